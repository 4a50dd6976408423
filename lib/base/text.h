/* Text that grows. */
#ifndef RONDO_LIB_BASE_TEXT_H
#define RONDO_LIB_BASE_TEXT_H

#include "rondo.h"

struct rondo_text {
    char *bytes;
    size_t used, room;
    int failed;
};

void rondo_text_add(struct rondo_text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* With status RONDO_SUCCESS and enough memory *result becomes the text; else it is freed. Returns the status. */
rondo_result_t rondo_text_finish(struct rondo_text *text, rondo_result_t status, char **result);

#endif

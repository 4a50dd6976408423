/* A text that grows as it is written. Zero-initialized, it is empty. Belongs to one thread at a time. And what texts need
 * before they can be part of JSON. */
#ifndef RONDO_LIB_BASE_TEXT_H
#define RONDO_LIB_BASE_TEXT_H

#include "rondo.h"
#include <stddef.h>

struct rondo_text {
    char *bytes;
    size_t used, room;
    int failed; /* memory was out: what is added from then on is dropped */
};

/* Appends a formatted text. Failing is noted and told by rondo_text_finish. */
void rondo_text_add(struct rondo_text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Ends the writing: with status RONDO_SUCCESS *result becomes the text, terminated, which the caller frees; else the text is
 * freed and *result is NULL. Returns the status, or RONDO_ERR_MEMORY if memory was out or nothing was added. */
rondo_result_t rondo_text_finish(struct rondo_text *text, rondo_result_t status, char **result);
/* A terminated copy of the bytes up to the first zero, at most count, which the caller frees. NULL: there is no memory. */
char *rondo_text_copy(const char *bytes, size_t count);
/* A formatted text, which the caller frees. NULL: there is no memory. */
char *rondo_text_format(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Replaces by ' whatever is not printable ASCII, or would end a string of JSON. */
void rondo_text_make_plain(char *text);

#endif

/* Assertions on the result of a library call and on the reason in its message. Included after cmocka.h. */
#ifndef RONDO_TEST_VERDICTS_H
#define RONDO_TEST_VERDICTS_H

#include "lib/base/error.h"

#include <string.h>

#define assert_says(result, code, words)                                                                                       \
    do {                                                                                                                       \
        rondo_result_t says_ = (result);                                                                                       \
        if (says_ != (code) || strstr(rondo_last_error(), words) == NULL)                                                      \
            fail_msg("%d: \"%s\", not %d with \"%s\"", (int) says_, rondo_last_error(), (int) (code), words);                  \
    } while (0)

#define assert_right(result)                                                                                                   \
    do {                                                                                                                       \
        if ((result) != RONDO_SUCCESS)                                                                                         \
            fail_msg("%s", rondo_last_error());                                                                                \
    } while (0)

#endif

/* See lib/base/text.h. The buffer doubles, so that adding is linear in all. */
#include "lib/base/text.h"

#include "lib/base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void add(struct rondo_text *text, const char *format, va_list arguments)
{
    va_list again;
    va_copy(again, arguments);
    int length = vsnprintf(NULL, 0, format, arguments);
    size_t wanted = length < 0 ? 0 : text->used + (size_t) length + 1;
    if (length < 0 || text->failed) {
        text->failed = 1;
    } else if (wanted > text->room) {
        size_t room = 2 * text->room > wanted ? 2 * text->room : wanted + 4096;
        char *bytes = realloc(text->bytes, room);
        if (bytes == NULL) {
            text->failed = 1;
        } else {
            text->bytes = bytes;
            text->room = room;
        }
    }
    if (!text->failed) {
        vsnprintf(text->bytes + text->used, (size_t) length + 1, format, again);
        text->used += (size_t) length;
    }
    va_end(again);
}

void rondo_text_add(struct rondo_text *text, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    add(text, format, arguments);
    va_end(arguments);
}

rondo_result_t rondo_text_finish(struct rondo_text *text, rondo_result_t status, char **result)
{
    if (status == RONDO_SUCCESS && (text->failed || text->bytes == NULL))
        status = rondo_fail(RONDO_ERR_MEMORY, "no memory for a text of %zu bytes", text->used);
    if (status != RONDO_SUCCESS) {
        free(text->bytes);
        text->bytes = NULL;
    }
    *result = text->bytes;
    return status;
}

char *rondo_text_copy(const char *bytes, size_t count)
{
    const size_t length = strnlen(bytes, count);
    char *text = malloc(length + 1);
    if (text != NULL) {
        memcpy(text, bytes, length);
        text[length] = '\0';
    }
    return text;
}

char *rondo_text_format(const char *format, ...)
{
    struct rondo_text text = {0};
    va_list arguments;
    va_start(arguments, format);
    add(&text, format, arguments);
    va_end(arguments);
    if (text.failed) {
        free(text.bytes);
        return NULL;
    }
    return text.bytes;
}

void rondo_text_make_plain(char *text)
{
    for (; *text != '\0'; text++)
        if (*text == '"' || *text == '\\' || *text < ' ' || *text > '~')
            *text = '\'';
}

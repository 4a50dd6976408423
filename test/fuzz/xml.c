/* The reader of program files and everything behind it: any input is refused with a message or becomes a program that the
 * verifier judges. An accepted program can be written, and its file is accepted again. */
#include "rondo_program.h"

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static void write_and_read(rondo_program_t program)
{
    char *text = NULL;
    rondo_program_t again = NULL;
    rondo_result_t result = rondo_program_write_xml(program, &text);
    if (result == RONDO_ERR_UNSUPPORTED)
        return;
    if (result != RONDO_SUCCESS || rondo_program_read_xml(text, strlen(text), &again) != RONDO_SUCCESS ||
        rondo_program_check(again, NULL) != RONDO_SUCCESS)
        abort();
    rondo_program_destroy(again);
    rondo_program_text_free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    rondo_program_t program;
    if (bytes > 1 << 16)
        return 0;
    if (rondo_program_read_xml((const char *) data, bytes, &program) == RONDO_SUCCESS) {
        if (rondo_program_check(program, NULL) == RONDO_SUCCESS)
            write_and_read(program);
        rondo_program_destroy(program);
    } else if (rondo_last_error()[0] == '\0') {
        abort(); /* refused without a reason */
    }
    return 0;
}

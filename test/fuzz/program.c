/*
 * Fuzzing the reader of program files and all behind it: whatever the bytes, they are refused with a message or make a program
 * that the checker judges. `make fuzz` (clang's libFuzzer) runs it on the corpus beside this file; SECONDS=1800 for half an
 * hour.
 */
#include "rondo_program.h"
#include "tuning.h"

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    rondo_program_t program;
    struct rondo_tuning *tuning;
    if (bytes > 1 << 16)
        return 0;
    if (rondo_program_read_xml((const char *) data, bytes, &program) == RONDO_SUCCESS) {
        char *text = NULL;
        if (rondo_program_check(program, NULL) == RONDO_SUCCESS && rondo_program_write_xml(program, &text) == RONDO_SUCCESS)
            rondo_program_text_free(text);
        rondo_program_destroy(program);
    } else if (rondo_last_error()[0] == '\0') {
        abort(); /* refused without a reason */
    }
    if (rondo_tuning_parse((const char *) data, bytes, "fuzz", &tuning) == RONDO_SUCCESS)
        rondo_tuning_free(tuning);
    return 0;
}

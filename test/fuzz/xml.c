/* The reader of program files and everything behind it: any input is refused with a message or becomes a program that the
 * verifier judges. An accepted program can be written, and its file is accepted again. A custom program gets its conditions
 * from the input's bytes. */
#include "rondo_program.h"

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

/* A condition for every four bytes, some of them wrong: data[0] says which. */
static void add_conditions(rondo_program_t program, const rondo_program_signature_t *signature, const uint8_t *data,
                           size_t bytes)
{
    for (size_t at = 0; at + 4 <= bytes && at < 64; at += 4) {
        const int rank = data[at] % (signature->ranks + 1), holder = data[at + 1] % signature->ranks;
        const int ranks[2] = {rank, holder};
        const size_t chunk = data[at + 2] % 4, indexes[2] = {data[at + 3] % 4u, chunk};
        if (data[at] % 7 == 0)
            rondo_program_assume(program, holder, chunk, data[at + 3] % 3, ranks, indexes);
        else
            rondo_program_require(program, holder, chunk, 1 + data[at + 3] % 2, ranks, indexes);
    }
}

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
        rondo_program_signature_t signature;
        if (rondo_program_describe(program, &signature) != RONDO_SUCCESS)
            abort();
        const int custom = strcmp(signature.collective, "custom") == 0; /* its file lacks the conditions */
        if (custom)
            add_conditions(program, &signature, data, bytes);
        if (rondo_program_check(program, NULL) == RONDO_SUCCESS && !custom)
            write_and_read(program);
        rondo_program_destroy(program);
    } else if (rondo_last_error()[0] == '\0') {
        abort(); /* refused without a reason */
    }
    return 0;
}

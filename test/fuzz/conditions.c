/* What a custom program starts from and must compute, as `rondo program` reads it from files: any two files are refused, or
 * become conditions that the language takes, and a program with them is judged with a message. */
#include "tools/program/conditions.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

enum { HEAD = 4, MOST = 6 };

static int read_condition(const char *what, const uint8_t *data, size_t bytes, const rondo_program_signature_t *signature,
                          struct conditions *conditions)
{
    char path[64];
    const int fd = memfd_create("condition", MFD_CLOEXEC);
    if (fd < 0 || write(fd, data, bytes) != (ssize_t) bytes)
        abort();
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    const int code = conditions_read(what, path, signature, conditions);
    close(fd);
    return code;
}

/* Each chunk goes to the same place of the next rank's output, if there is one. */
static void write_program(rondo_program_t program, const rondo_program_signature_t *signature)
{
    for (int rank = 0; rank < signature->ranks; rank++)
        for (int i = 0; i < signature->inputs && i < signature->outputs; i++)
            rondo_chunk_copy(rondo_chunk(program, rank, RONDO_BUFFER_INPUT, (size_t) i, 1), (rank + 1) % signature->ranks,
                             RONDO_BUFFER_OUTPUT, (size_t) i);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static FILE *silent;
    rondo_program_signature_t signature = RONDO_PROGRAM_SIGNATURE_DEFAULT;
    struct conditions before = {0}, after = {0};
    rondo_program_t program;
    if (bytes < HEAD)
        return 0;
    if (silent == NULL && (silent = fopen("/dev/null", "w")) != NULL)
        stderr = silent; /* refusals are printed; the fuzzer writes to the descriptor itself */
    signature.name = "fuzz", signature.collective = "custom", signature.ranks = 1 + data[0] % MOST;
    signature.inputs = data[1] % MOST, signature.outputs = data[2] % MOST;
    const uint8_t *text = data + HEAD, *second = memchr(text, '\0', bytes - HEAD);
    const size_t first_bytes = second != NULL ? (size_t) (second - text) : bytes - HEAD;
    int code =
        second == NULL ? 0 : read_condition("precondition", second + 1, bytes - HEAD - first_bytes - 1, &signature, &before);
    if (code == 0)
        code = read_condition("postcondition", text, first_bytes, &signature, &after);
    if (code == 0) {
        if (rondo_program_create(&program, &signature) != RONDO_SUCCESS)
            abort();
        conditions_apply(&before, &(struct conditions){0}, program);
        write_program(program, &signature);
        conditions_apply(&(struct conditions){0}, &after, program);
        if (rondo_program_check(program, NULL) != RONDO_SUCCESS && strstr(rondo_last_error(), "'fuzz'") == NULL)
            abort();
        rondo_program_destroy(program);
    }
    conditions_free(&before);
    conditions_free(&after);
    return 0;
}

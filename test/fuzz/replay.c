/* Runs a fuzz target on files instead of under a fuzzer, so that the corpus, which includes earlier failures, is among the
 * tests. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

int main(int argc, char **argv)
{
    enum { BYTES_MAX = 1 << 20 };
    uint8_t *data = malloc(BYTES_MAX);
    for (int i = 1; i < argc; i++) {
        FILE *file = fopen(argv[i], "rb");
        if (data == NULL || file == NULL) {
            fprintf(stderr, "cannot read %s\n", argv[i]);
            return 2;
        }
        size_t bytes = fread(data, 1, BYTES_MAX, file);
        fclose(file);
        fprintf(stderr, "%s\n", argv[i]); /* if the program crashes, the last name is the culprit */
        LLVMFuzzerTestOneInput(data, bytes);
    }
    free(data);
    printf("%d files\n", argc - 1);
    return argc > 1 ? 0 : 2;
}

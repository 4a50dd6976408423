/* The reader of tuning tables: any input is refused with a message or becomes a table. */
#include "rondo.h"
#include "lib/select/tuning.h"

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct rondo_tuning *tuning;
    if (rondo_tuning_parse((const char *) data, bytes, "fuzz", &tuning) == RONDO_SUCCESS) {
        rondo_tuning_find(tuning, RONDO_KIND_ALLREDUCE, 2, 1000);
        rondo_tuning_free(tuning);
    } else if (rondo_last_error()[0] == '\0') {
        abort();
    }
    return 0;
}

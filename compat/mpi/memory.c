/* Memory for staging. A few pieces are reused, because the system takes longer to map fresh memory than to copy into it. */
#include "compat/mpi/shim.h"

#include <pthread.h>
#include <stdlib.h>

#define SPARES      8
#define SPARE_BYTES ((size_t) 64 << 20) /* of all spare pieces */
#define HEADER      64                  /* before each piece: its size; keeps the alignment */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static size_t *spare[SPARES]; /* the headers */
static size_t spare_bytes;

void *rondo_mpi_memory_alloc(size_t bytes)
{
    size_t *header = NULL;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < SPARES && header == NULL; i++)
        if (spare[i] != NULL && spare[i][0] >= bytes && spare[i][0] / 4 <= bytes) {
            header = spare[i];
            spare[i] = NULL;
            spare_bytes -= header[0];
        }
    pthread_mutex_unlock(&lock);
    if (header == NULL) {
        bytes = bytes < 4096 ? 4096 : bytes;
        if (bytes > SIZE_MAX - 2 * HEADER ||
            (header = aligned_alloc(HEADER, (bytes + HEADER + HEADER - 1) / HEADER * HEADER)) == NULL)
            return NULL;
        header[0] = bytes;
    }
    return (char *) header + HEADER;
}

void rondo_mpi_memory_free(void *memory)
{
    if (memory == NULL)
        return;
    size_t *header = (void *) ((char *) memory - HEADER);
    pthread_mutex_lock(&lock);
    for (int i = 0; i < SPARES && header != NULL; i++)
        if (spare[i] == NULL && spare_bytes + header[0] <= SPARE_BYTES) {
            spare_bytes += header[0];
            spare[i] = header;
            header = NULL;
        }
    pthread_mutex_unlock(&lock);
    free(header);
}

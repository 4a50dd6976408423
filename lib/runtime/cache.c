/* See lib/runtime/cache.h. Linux tells the size of a processor's last-level cache in sysfs; a machine without a third level, or
 * a system that says nothing, gets the size from which on results stay in no cache that was measured. */
#include "lib/runtime/cache.h"

#include "lib/base/file.h"

#include <stdlib.h>

#define LAST_LEVEL     "/sys/devices/system/cpu/cpu0/cache/index3/size"
#define MOST           ((size_t) 32 << 20)
#define LEAST          ((size_t) 2 << 20) /* a result that is read soon after */
#define BUFFERS_A_RANK 2                  /* what it sends and what it receives */

/* Returns the bytes of the last-level cache; 0: unknown. */
static size_t last_level_bytes(void)
{
    char text[32] = "", *end = text;
    if (rondo_file_read(LAST_LEVEL, text, sizeof(text) - 1) <= 0)
        return 0;
    const unsigned long size = strtoul(text, &end, 10);
    const unsigned shift = *end == 'K' ? 10 : *end == 'M' ? 20 : 0;
    return size <= SIZE_MAX >> 20 ? (size_t) size << shift : 0;
}

size_t rondo_stream_bytes(uint32_t ranks)
{
    const size_t cache = last_level_bytes(), share = ranks > 0 ? cache / BUFFERS_A_RANK / ranks : 0;
    return cache == 0 || share > MOST ? MOST : share < LEAST ? LEAST : share;
}

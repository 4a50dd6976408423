/* From which size on an operation's results are stored past the processor's caches. */
#ifndef RONDO_LIB_RUNTIME_CACHE_H
#define RONDO_LIB_RUNTIME_CACHE_H

#include <stddef.h>
#include <stdint.h>

/* Returns the bytes of a call from which on its result is stored past the caches, on a host with so many ranks of the job:
 * where what all of them send and receive is more than the last-level cache holds, by what the system says of it. Any thread
 * may call. */
size_t rondo_stream_bytes(uint32_t ranks);

#endif

/* Pages of the host as a dma-buf, by the kernel's /dev/udmabuf: with them a card's registration of dma-bufs, and all that
 * follows it, can be tried without a GPU. */
#ifndef RONDO_TRANSPORT_UDMABUF_H
#define RONDO_TRANSPORT_UDMABUF_H

#include "rondo.h"

#include <stddef.h>

/* Zeroed pages, at least so many bytes; the caller closes *descriptor when whoever needs it has it. RONDO_ERR_TRANSPORT with
 * the reason where the kernel has none. */
rondo_result_t rondo_udmabuf_allocate(size_t bytes, char **base, size_t *whole, int *descriptor);
void rondo_udmabuf_release(char *base, size_t whole);

#endif

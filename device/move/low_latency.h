/*
 * The LL protocol: every 8-byte word of a slot carries 4 bytes of data and a 4-byte flag, stored together, so that data
 * announce themselves and need neither a fence nor a tail. The flag is the slot's position + 1: a slot is used again only
 * after the credit (head) has come back, so an old flag never equals the awaited one.
 * LL128 does the same by lines of 128 bytes: 112 bytes of data, and four times the flag. Eight lanes of a warp store a line
 * with one instruction, and eight load it with one. No memory model promises it, but over NVLink, and in the L2 of the GPU
 * where a line lives, such a line is never seen in part; so a whole flag means whole data. LL128 is used there alone
 * (rondo_gpu_is_linked), and by GPUs alone (device/move/move_ll128.h, device/move/general_packets.h). A thread that cannot
 * store a line at once stores its data, then fences, then stores the flag.
 */
#ifndef RONDO_DEVICE_MOVE_LOW_LATENCY_H
#define RONDO_DEVICE_MOVE_LOW_LATENCY_H

#include "device/abi/platform.h"

#include <stddef.h>
#include <string.h>

#define RONDO_LINE_BYTES 128u
#define RONDO_LINE_DATA  112u

/* Bytes of a slot that so many bytes of data take in lines. */
RONDO_FUNCTION size_t rondo_line_bytes(size_t bytes)
{
    return (bytes + RONDO_LINE_DATA - 1) / RONDO_LINE_DATA * RONDO_LINE_BYTES;
}

/* Stores data as LL words. bytes: a multiple of 4, here and below. A reader loads data and flag at once, so that the words need
 * no order among themselves. Release: who has had an answer to a message may rely on all that came before the message, as the
 * proof of a program does. */
RONDO_FUNCTION void rondo_ll_store(uint64_t *slot, const void *data, size_t bytes, uint32_t flag)
{
    const char *from = (const char *) data;
    for (size_t i = 0; i < bytes / 4; i++) {
        uint32_t value;
        memcpy(&value, from + 4 * i, 4);
        rondo_store_release(slot + i, (uint64_t) flag << 32 | value);
    }
}

/* Whether all words have arrived. The last one, which usually comes last, is looked at first. Acquire pairs with their release.
 */
RONDO_FUNCTION int rondo_ll_ready(const uint64_t *slot, size_t bytes, uint32_t flag)
{
    for (size_t i = bytes / 4; i > 0; i--)
        if ((uint32_t) (rondo_load_acquire(slot + i - 1) >> 32) != flag)
            return 0;
    return 1;
}

/* Loads the data of LL words that have arrived. */
RONDO_FUNCTION void rondo_ll_load(void *data, const uint64_t *slot, size_t bytes)
{
    char *to = (char *) data;
    for (size_t i = 0; i < bytes / 4; i++) {
        uint32_t value = (uint32_t) rondo_load_relaxed(slot + i);
        memcpy(to + 4 * i, &value, 4);
    }
}

#endif

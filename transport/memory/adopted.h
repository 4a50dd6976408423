/*
 * Shared segments that a rank's device must reach too. In one process several ranks may use one segment through the same
 * mapping, which can be registered with a device but once: so this counts, for the whole process.
 */
#ifndef RONDO_TRANSPORT_MEMORY_ADOPTED_H
#define RONDO_TRANSPORT_MEMORY_ADOPTED_H

#include "transport/memory/segment.h"

struct rondo_device;

/* Makes the segment reachable by the device, at the same address; each success is undone by one disown, before the segment is
 * released. Nothing happens where the device reaches all memory, or device is NULL. Any thread. Errors of the device, or
 * RONDO_ERR_MEMORY. disown may wait for a daemon to leave: not on a control thread. */
rondo_result_t rondo_adopt(struct rondo_device *device, struct rondo_segment *segment);
void rondo_disown(struct rondo_device *device, struct rondo_segment *segment);

#endif

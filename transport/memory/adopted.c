/* See transport/memory/adopted.h. A kind's adopt makes memory reachable by all devices of that kind in the process, and any of
 * them may disown it. disown may wait for a daemon to leave, so it is called without the lock; until it is done, the entry
 * stays with count 0, and only a thread that adopts this very segment again waits. */
#include "transport/memory/adopted.h"

#include "device/device.h"
#include "lib/base/error.h"

#include <pthread.h>
#include <stdlib.h>

struct adopted {
    struct adopted *next;
    const char *base;
    int count; /* of adoptions; 0: the segment is being disowned */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t disowned = PTHREAD_COND_INITIALIZER;
static struct adopted *list;

static struct adopted **find(const char *base)
{
    struct adopted **link = &list;
    while (*link != NULL && (*link)->base != base)
        link = &(*link)->next;
    return link;
}

rondo_result_t rondo_adopt(struct rondo_device *device, struct rondo_segment *segment)
{
    rondo_result_t result = RONDO_SUCCESS;
    if (device == NULL || device->kind->adopt == NULL)
        return RONDO_SUCCESS;
    pthread_mutex_lock(&lock);
    struct adopted *known;
    while ((known = *find(segment->base)) != NULL && known->count == 0)
        pthread_cond_wait(&disowned, &lock);
    if (known == NULL) {
        known = calloc(1, sizeof(*known));
        if (known == NULL)
            result = rondo_fail(RONDO_ERR_MEMORY, "no memory to note a segment of the device");
        else
            result = device->kind->adopt(device, segment->base, segment->bytes);
        if (result == RONDO_SUCCESS) {
            known->base = segment->base;
            known->next = list;
            list = known;
        } else {
            free(known);
        }
    }
    if (result == RONDO_SUCCESS)
        known->count++;
    pthread_mutex_unlock(&lock);
    return result;
}

void rondo_disown(struct rondo_device *device, struct rondo_segment *segment)
{
    if (device == NULL || device->kind->adopt == NULL)
        return;
    pthread_mutex_lock(&lock);
    struct adopted *known = *find(segment->base);
    int last = known != NULL && --known->count == 0;
    pthread_mutex_unlock(&lock);
    if (!last)
        return;
    device->kind->disown(device, segment->base);
    pthread_mutex_lock(&lock);
    *find(segment->base) = known->next;
    free(known);
    pthread_cond_broadcast(&disowned);
    pthread_mutex_unlock(&lock);
}

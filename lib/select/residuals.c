/* See lib/select/residuals.h. */
#include "lib/select/residuals.h"

#include "device/device.h"
#include "lib/base/error.h"

#include <stdlib.h>

/* The size, in bytes, of a call's residual. */
static size_t residual_bytes(const struct rondo_comm *comm, const struct rondo_call *call)
{
    const size_t computed = call->type == RONDO_DOUBLE ? sizeof(double) : sizeof(float);
    return call->count * computed * (call->kind == RONDO_KIND_REDUCE_SCATTER_BLOCK ? (size_t) comm->size : 1);
}

static void free_residual(struct rondo_comm *comm, struct rondo_residual *residual)
{
    struct rondo_device *device = comm->runtime->device;
    if (residual->memory != NULL)
        device->kind->release(device, residual->memory, residual->bytes);
    free(residual);
}

static rondo_result_t make(struct rondo_comm *comm, const struct rondo_call *call, struct rondo_residual **result)
{
    struct rondo_device *device = comm->runtime->device;
    struct rondo_residual *residual = calloc(1, sizeof(*residual));
    const size_t bytes = residual_bytes(comm, call);
    void *zeros = calloc(1, bytes);
    rondo_result_t status = RONDO_SUCCESS;
    if (residual != NULL)
        *residual =
            (struct rondo_residual){.call = *call, .users = 1, .bytes = bytes, .memory = device->kind->allocate(device, bytes)};
    if (residual == NULL || zeros == NULL || residual->memory == NULL)
        status = rondo_fail(RONDO_ERR_MEMORY, "no device memory for %zu bytes of residuals", bytes);
    else
        status = device->kind->upload(device, residual->memory, zeros, bytes);
    free(zeros);
    if (status == RONDO_SUCCESS)
        *result = residual;
    else if (residual != NULL)
        free_residual(comm, residual);
    return status;
}

/* Whether what the one call loses is to be added to the other's data. */
static int is_alike(const struct rondo_call *one, const struct rondo_call *other)
{
    return one->send == other->send && one->recv == other->recv && one->count == other->count && one->kind == other->kind &&
           one->type == other->type && one->op == other->op && one->root == other->root && one->rate == other->rate;
}

/* Takes it out of the list, or returns NULL. With the lock. */
static struct rondo_residual *take(struct rondo_comm_residuals *residuals, const struct rondo_call *call)
{
    struct rondo_residual **link = &residuals->first, *found;
    while (*link != NULL && !is_alike(&(*link)->call, call))
        link = &(*link)->next;
    if ((found = *link) != NULL) {
        *link = found->next;
        residuals->count--;
    }
    return found;
}

/* Frees those that were used longest ago and that no request refers to, until so many are left. With the lock. */
static void shrink(struct rondo_comm *comm, int most)
{
    struct rondo_comm_residuals *residuals = comm->residuals;
    while (residuals->count > most) {
        struct rondo_residual **oldest = NULL;
        for (struct rondo_residual **link = &residuals->first; *link != NULL; link = &(*link)->next)
            if ((*link)->users == 0)
                oldest = link;
        if (oldest == NULL)
            return;
        struct rondo_residual *residual = *oldest;
        *oldest = residual->next;
        residuals->count--;
        free_residual(comm, residual);
    }
}

rondo_result_t rondo_residual_use(struct rondo_comm *comm, const struct rondo_call *call, int shared,
                                  struct rondo_residual **residual)
{
    struct rondo_comm_residuals *residuals = comm->residuals;
    rondo_result_t status = RONDO_SUCCESS;
    if (!shared)
        return make(comm, call, residual);
    pthread_mutex_lock(&residuals->lock);
    struct rondo_residual *found = take(residuals, call);
    if (found != NULL) {
        found->users++;
    } else {
        shrink(comm, RONDO_RESIDUALS_MOST - 1);
        status = make(comm, call, &found);
    }
    if (status == RONDO_SUCCESS) {
        found->shared = 1;
        found->next = residuals->first;
        residuals->first = found;
        residuals->count++;
        *residual = found;
    }
    pthread_mutex_unlock(&residuals->lock);
    return status;
}

void rondo_residual_release(struct rondo_comm *comm, struct rondo_residual *residual)
{
    if (!residual->shared) {
        free_residual(comm, residual);
        return;
    }
    pthread_mutex_lock(&comm->residuals->lock);
    residual->users--;
    pthread_mutex_unlock(&comm->residuals->lock);
}

void rondo_residuals_free(struct rondo_comm *comm)
{
    pthread_mutex_lock(&comm->residuals->lock);
    shrink(comm, 0);
    pthread_mutex_unlock(&comm->residuals->lock);
}

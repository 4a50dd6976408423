/* Streams of the host device: batches that one thread a stream executes in order, while there are any. A batch is what one
 * group has on one stream. */
#include "compat/nccl/rondo_nccl.h"
#include "compat/nccl/scale.h"
#include "compat/nccl/shim.h"

#include <stdlib.h>
#include <string.h>

struct batch {
    struct batch *next;
    int count;
    uint64_t *turns; /* of each operation: how many batches of its communicator were queued before */
    struct rondo_nccl_operation operations[];
};

struct stream {
    struct stream *next;
    cudaStream_t name;
    struct batch *first, **last;
};

/* Those with something to do, each with a thread. The lock also covers the communicators' queued and begun. */
static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct stream *busy;
} streams = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

/* Of those that Rondo carries out. */
static int is_first_of_comm(const struct batch *batch, int i)
{
    if (rondo_nccl_is_one_sided(&batch->operations[i]))
        return 0;
    for (int k = 0; k < i; k++)
        if (!rondo_nccl_is_one_sided(&batch->operations[k]) && batch->operations[k].comm == batch->operations[i].comm)
            return 0;
    return 1;
}

static rondo_result_t start(struct rondo_nccl_operation *o)
{
    const void *from;
    size_t elements, bytes = rondo_nccl_type_bytes(o->type);
    if (o->copy != NULL && o->count > 0)
        memcpy(o->recv, o->copy, o->count * bytes);
    if (o->scaled && o->count > 0) {
        void *to = rondo_nccl_scale_place(o, &from, &elements);
        if (to == NULL)
            to = o->temporary = malloc(elements * bytes);
        if (to == NULL)
            return RONDO_ERR_MEMORY; /* of rondo_last_error there is none */
        rondo_nccl_scale_host(to, from, elements, o->type, o->scalar.address != NULL ? o->scalar.address : o->scalar.value);
        rondo_nccl_take_scaled(o, to);
    }
    return rondo_nccl_call(o);
}

/* There is no call left to return it to. */
static void note_failure(struct ncclComm *comm, rondo_result_t result)
{
    ncclResult_t none = ncclSuccess, code = rondo_nccl_result(result, "on a stream");
    __atomic_compare_exchange_n(&comm->failed, &none, code, 0, __ATOMIC_RELEASE, __ATOMIC_RELAXED);
}

/* Collectives match in call order, whatever their streams. */
static void begin_comm(struct batch *batch, int first)
{
    struct ncclComm *comm = batch->operations[first].comm;
    pthread_mutex_lock(&streams.lock);
    while (comm->begun != batch->turns[first])
        pthread_cond_wait(&streams.changed, &streams.lock);
    pthread_mutex_unlock(&streams.lock);
    rondo_group_start(comm->comm);
    for (int i = first; i < batch->count; i++) {
        struct rondo_nccl_operation *o = &batch->operations[i];
        rondo_result_t result = o->comm == comm && !rondo_nccl_is_one_sided(o) ? start(o) : RONDO_SUCCESS;
        if (result != RONDO_SUCCESS)
            note_failure(comm, result);
    }
    rondo_group_end(comm->comm);
    pthread_mutex_lock(&streams.lock);
    comm->begun++;
    pthread_cond_broadcast(&streams.changed);
    pthread_mutex_unlock(&streams.lock);
}

/* Waits are last, because what they wait for may need what else this group has. */
static void do_one_sided(const struct batch *batch, int waits)
{
    for (int i = 0; i < batch->count; i++) {
        const struct rondo_nccl_operation *o = &batch->operations[i];
        if (!rondo_nccl_is_one_sided(o) || (o->kind == RONDO_NCCL_WAIT) != waits)
            continue;
        rondo_result_t result = rondo_nccl_one_sided(o);
        if (result != RONDO_SUCCESS)
            note_failure(o->comm, result);
    }
}

static void execute(struct batch *batch)
{
    do_one_sided(batch, 0);
    for (int i = 0; i < batch->count; i++)
        if (is_first_of_comm(batch, i))
            begin_comm(batch, i);
    for (int i = 0; i < batch->count; i++) {
        struct rondo_nccl_operation *o = &batch->operations[i];
        rondo_result_t result = o->request != NULL ? rondo_wait(o->request) : RONDO_SUCCESS;
        if (result != RONDO_SUCCESS)
            note_failure(o->comm, result);
        free(o->temporary);
    }
    do_one_sided(batch, 1);
    for (int i = 0; i < batch->count; i++)
        rondo_nccl_comm_let_go(batch->operations[i].comm);
    free(batch->turns);
    free(batch);
}

static void *run(void *argument)
{
    struct stream *stream = argument;
    pthread_mutex_lock(&streams.lock);
    while (stream->first != NULL) {
        struct batch *batch = stream->first;
        stream->first = batch->next;
        if (stream->first == NULL)
            stream->last = &stream->first;
        pthread_mutex_unlock(&streams.lock);
        execute(batch);
        pthread_mutex_lock(&streams.lock);
    }
    for (struct stream **link = &streams.busy; *link != NULL; link = &(*link)->next)
        if (*link == stream) {
            *link = stream->next;
            break;
        }
    pthread_cond_broadcast(&streams.changed);
    pthread_mutex_unlock(&streams.lock);
    free(stream);
    return NULL;
}

/* Under the lock. */
static struct stream *find(cudaStream_t name)
{
    struct stream *stream = streams.busy;
    while (stream != NULL && stream->name != name)
        stream = stream->next;
    return stream;
}

/* Under the lock. */
static int append(struct batch *batch)
{
    struct stream *stream = find(batch->operations[0].stream);
    pthread_t thread;
    int made = stream == NULL;
    if (made && (stream = calloc(1, sizeof(*stream))) == NULL)
        return 0;
    if (made) {
        stream->name = batch->operations[0].stream;
        stream->last = &stream->first;
    }
    *stream->last = batch;
    stream->last = &batch->next;
    if (!made)
        return 1;
    if (pthread_create(&thread, NULL, run, stream) != 0) {
        free(stream);
        return 0;
    }
    pthread_detach(thread);
    stream->next = streams.busy;
    streams.busy = stream;
    return 1;
}

/* The group's operations on the stream of the first that is not done yet. */
static struct batch *gather(const struct rondo_nccl_operation *operations, int count, int first)
{
    struct batch *batch = calloc(1, sizeof(*batch) + (size_t) (count - first) * sizeof(*operations));
    if (batch == NULL || (batch->turns = calloc((size_t) (count - first), sizeof(*batch->turns))) == NULL) {
        free(batch);
        return NULL;
    }
    for (int i = first; i < count; i++)
        if (operations[i].stream == operations[first].stream)
            batch->operations[batch->count++] = operations[i];
    return batch;
}

static int is_first_of_stream(const struct rondo_nccl_operation *operations, int i)
{
    for (int k = 0; k < i; k++)
        if (operations[k].stream == operations[i].stream)
            return 0;
    return 1;
}

ncclResult_t rondo_nccl_host_launch(const struct rondo_nccl_operation *operations, int count)
{
    ncclResult_t result = ncclSuccess;
    pthread_mutex_lock(&streams.lock);
    for (int i = 0; i < count && result == ncclSuccess; i++) {
        if (!is_first_of_stream(operations, i))
            continue;
        struct batch *batch = gather(operations, count, i);
        if (batch == NULL) {
            result = ncclSystemError;
            break;
        }
        for (int k = 0; k < batch->count; k++) {
            struct ncclComm *comm = batch->operations[k].comm;
            rondo_nccl_comm_hold_again(comm);
            batch->turns[k] = is_first_of_comm(batch, k) ? comm->queued++ : 0;
        }
        if (!append(batch)) {
            for (int k = 0; k < batch->count; k++) {
                rondo_nccl_comm_let_go(batch->operations[k].comm);
                batch->operations[k].comm->queued -= (uint64_t) is_first_of_comm(batch, k);
            }
            free(batch->turns);
            free(batch);
            result = ncclSystemError;
        }
    }
    pthread_mutex_unlock(&streams.lock);
    return result == ncclSuccess ? result
                                 : rondo_nccl_fail(result, "no memory, or no thread, for a group of %d operations", count);
}

void rondo_nccl_synchronize(void *stream)
{
    pthread_mutex_lock(&streams.lock);
    while (find((cudaStream_t) stream) != NULL)
        pthread_cond_wait(&streams.changed, &streams.lock);
    pthread_mutex_unlock(&streams.lock);
}

/* Accessing peers' buffers where they lie (lib/submission/reach.h). Relies on conditions that are the same on all ranks,
 * because all must choose the same algorithm. */
#include "lib/submission/reach.h"

#include "lib/submission/arguments.h"
#include "lib/submission/bind.h"
#include "lib/connection/window.h"
#include "lib/submission/request.h"

/* A call that may_be_direct has no arrays of counts. */
size_t rondo_buffer_bytes(const struct rondo_comm *comm, const struct rondo_call *call, int output)
{
    size_t blocks = rondo_kind_blocks(call->kind, output ? RONDO_OUTPUT : RONDO_INPUT, (uint32_t) comm->size);
    return blocks * call->count * rondo_type_bytes(call->type);
}

/* Whether there are direct algorithms for such calls. */
static int may_be_direct(const struct rondo_comm *comm, const struct rondo_call *call)
{
    return comm->size > 1 && call->rate == 0 &&
           (call->kind == RONDO_KIND_ALLREDUCE || call->kind == RONDO_KIND_REDUCE_SCATTER_BLOCK ||
            call->kind == RONDO_KIND_ALLGATHER || call->kind == RONDO_KIND_ALLTOALL || call->kind == RONDO_KIND_BCAST);
}

int rondo_is_reachable(const struct rondo_comm *comm, const struct rondo_call *call,
                       struct rondo_registration *const windows[2])
{
    char *input, *output;
    if (!may_be_direct(comm, call))
        return 0;
    if (comm->same_process)
        return 1;
    if (windows[0] != NULL)
        return windows[0]->usable && windows[1]->usable;
    uint64_t window[2];
    rondo_call_buffers(comm, call, &input, &output);
    return rondo_window_find(comm, input, rondo_buffer_bytes(comm, call, 0), window) &&
           rondo_window_find(comm, output, rondo_buffer_bytes(comm, call, 1), window);
}

rondo_result_t rondo_open_buffers(struct rondo_comm *comm, const struct rondo_call *call, struct rondo_registration *windows[2])
{
    char *buffers[2];
    rondo_result_t result = RONDO_SUCCESS;
    if (!may_be_direct(comm, call) || comm->same_process || !comm->same_host || rondo_call_bytes(comm, call) <= 16 * 1024)
        return RONDO_SUCCESS;
    rondo_call_buffers(comm, call, &buffers[0], &buffers[1]);
    for (int b = 0; b < 2; b++) {
        rondo_result_t one = rondo_window_open(comm, buffers[b], rondo_buffer_bytes(comm, call, b), &windows[b]);
        result = one != RONDO_SUCCESS ? one : result; /* the message is the last failure's, too */
    }
    return result;
}

void rondo_close_buffers(struct rondo_comm *comm, struct rondo_registration *const windows[2])
{
    for (int b = 0; b < 2; b++)
        if (windows[b] != NULL)
            rondo_window_close(comm, windows[b]);
}

int rondo_relies_on_registrations(const struct rondo_request *request)
{
    return request->direct && !request->comm->same_process;
}

rondo_result_t rondo_request_still(const struct rondo_request *request)
{
    const struct rondo_comm *comm = request->comm;
    char *const *buffers = request->operation->buffers;
    rondo_result_t result = RONDO_SUCCESS;
    if (!rondo_relies_on_registrations(request))
        return RONDO_SUCCESS;
    for (int b = 0; b < 2 && result == RONDO_SUCCESS && (b == 0 || buffers[0] != buffers[1]); b++)
        result = request->windows[b] != NULL
                     ? rondo_window_still(request->windows[b])
                     : rondo_windows_still(comm, buffers[b], rondo_buffer_bytes(comm, &request->call, b));
    return result;
}

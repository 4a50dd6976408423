/* Running block 0 of the host device, and the proxy, on a waiting thread (lib/submission/assist.h). Relies on the device table
 * for the claim of the block, and on proxy/proxies.h for that of the proxy. */
#include "lib/submission/assist.h"

#include "lib/submission/queue.h"
#include "lib/submission/state.h"
#include "proxy/proxies.h"

#define CALLBACK_ROUNDS 64 /* between two calls of the wait callback; a power of two */

void rondo_assist_run(struct rondo_runtime *runtime, const struct rondo_request *request)
{
    const struct rondo_device_kind *kind = runtime->device->kind;
    /* Without preemption a step may last until the proxy has brought a slot. Then the proxy's own thread must bring it. */
    struct rondo_proxy *proxy = rondo_proxies_first(runtime->proxies);
    int out = 0, moves_slots = runtime->device->daemon->policy.preempt && rondo_proxy_assist_begin(proxy);
    for (uint32_t rounds = 1; !out && rondo_request_state(request) != RONDO_REQUEST_DONE; rounds++) {
        out = kind->assist_step(runtime->device);
        rondo_queue_reap(runtime);
        if (moves_slots)
            rondo_proxy_assist_step(proxy);
        if (rounds % CALLBACK_ROUNDS == 0)
            rondo_assist_call_back(runtime);
    }
    if (moves_slots)
        rondo_proxy_assist_end(proxy);
}

void rondo_assist_once(struct rondo_runtime *runtime)
{
    const struct rondo_device_kind *kind = runtime->device->kind;
    if (kind->assist_begin == NULL || !runtime->device->daemon->policy.preempt || !rondo_device_alive(runtime->device) ||
        !kind->assist_begin(runtime->device))
        return;
    kind->assist_step(runtime->device);
    rondo_queue_reap(runtime);
    rondo_assist_leave(runtime, RONDO_ASSIST_MAYBE);
}

int rondo_assist(struct rondo_runtime *runtime, const struct rondo_request *request)
{
    const struct rondo_device_kind *kind = runtime->device->kind;
    if (kind->assist_begin == NULL || !kind->assist_begin(runtime->device))
        return 0;
    rondo_assist_run(runtime, request);
    rondo_assist_leave(runtime, RONDO_ASSIST_NEVER);
    return 1;
}

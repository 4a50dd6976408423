/* What transports and the proxy ask of the library (transport/context.h). library: the runtime. */
#include "lib/runtime/upcalls.h"

#include "lib/connection/endpoint_address.h"
#include "lib/connection/failure.h"
#include "lib/submission/queue.h"

/* Seconds for which what is on its way to a peer may stand still before the peer is given up, which fails all communicators
 * that it is in: one that lives, or RONDO_TIMEOUT if that is less, and one that is gone, which is the least. */
#define STILL_SECONDS 30.0
#define GONE_SECONDS  3.0

static rondo_result_t fetch_endpoint_address(void *library, const char *network, int peer,
                                             const struct rondo_endpoint_address **address)
{
    return rondo_endpoint_address_fetch(library, network, peer, address);
}

static void link_lost(void *library, int peer, const char *network, const char *why)
{
    rondo_link_lost(library, peer, network, why);
}

static int has_outstanding(void *library)
{
    return rondo_queue_outstanding(library);
}

static void hasten_daemon(void *library)
{
    rondo_queue_hasten(library);
}

static int patience_ms(void *library, int peer)
{
    const struct rondo_runtime *runtime = library;
    double timeout = runtime->settings.timeout;
    double seconds = timeout > 0 && timeout < STILL_SECONDS ? timeout : STILL_SECONDS;
    if (seconds < GONE_SECONDS || rondo_is_gone(runtime, peer))
        seconds = GONE_SECONDS;
    return (int) (seconds * 1000);
}

static int is_gone(void *library, int peer)
{
    return rondo_is_gone(library, peer);
}

const struct rondo_transport_upcalls rondo_upcalls = {.fetch_endpoint_address = fetch_endpoint_address,
                                                      .link_lost = link_lost,
                                                      .has_outstanding = has_outstanding,
                                                      .hasten_daemon = hasten_daemon,
                                                      .patience_ms = patience_ms,
                                                      .is_gone = is_gone};

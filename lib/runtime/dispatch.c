/* See lib/runtime/dispatch.h. */
#include "lib/runtime/dispatch.h"

#include "lib/base/error.h"
#include "lib/communicator/agreement.h"
#include "lib/connection/connect.h"
#include "lib/connection/endpoint_address.h"
#include "lib/connection/failure.h"
#include "lib/connection/mailbox.h"
#include "lib/diagnostics/flight_dump.h"
#include "lib/diagnostics/hang.h"
#include "lib/diagnostics/inspection.h"
#include "lib/submission/check.h"
#include "lib/submission/state.h"

/* Submission comes last: when it wakes waiting threads, nothing of the communicator is under way any more. */
const struct rondo_failure_listener *const rondo_failure_listeners[] = {&rondo_flight_dump_failure, &rondo_hang_failure,
                                                                        &rondo_connection_failure,  &rondo_submission_failure,
                                                                        &rondo_agreement_failure,   NULL};

void rondo_dispatch(void *argument, int source, uint32_t type, const void *data, size_t bytes)
{
    struct rondo_runtime *runtime = argument;
    switch (type) {
    case RONDO_CONTROL_DIED:
        rondo_peer_gone(runtime, source, RONDO_DIED);
        break;
    case RONDO_CONTROL_LEFT:
        rondo_peer_gone(runtime, source, RONDO_LEFT);
        break;
    case RONDO_CONTROL_LOST:
        for (int rank = 0; rank < runtime->size; rank++)
            if (rank != runtime->rank)
                rondo_peer_gone(runtime, rank, RONDO_UNREACHABLE);
        break;
    case RONDO_MESSAGE_MAIL:
        rondo_mailbox_deliver(runtime, source, data, bytes);
        break;
    case RONDO_MESSAGE_CONNECT:
    case RONDO_MESSAGE_CONNECTED:
    case RONDO_MESSAGE_CLOSE:
        rondo_connect_message(runtime, source, type, data, bytes);
        break;
    case RONDO_MESSAGE_CHECK:
    case RONDO_MESSAGE_VERDICT:
        rondo_check_message(runtime, source, type, data, bytes);
        break;
    case RONDO_MESSAGE_HANG_ASK:
    case RONDO_MESSAGE_HANG_QUERY:
    case RONDO_MESSAGE_HANG_STATE:
    case RONDO_MESSAGE_HANG_REPORT:
    case RONDO_MESSAGE_HANG_ANSWER:
        rondo_hang_message(runtime, source, type, data, bytes);
        break;
    case RONDO_MESSAGE_STATE_ASK:
    case RONDO_MESSAGE_STATE:
        rondo_inspection_message(runtime, source, type, data, bytes);
        break;
    case RONDO_MESSAGE_ENDPOINT_ASK:
    case RONDO_MESSAGE_ENDPOINT:
        rondo_endpoints_message(runtime, source, type, data, bytes);
        break;
    case RONDO_MESSAGE_FAILURE:
        rondo_failure_message(runtime, source, data, bytes);
        break;
    case RONDO_MESSAGE_AGREEMENT:
        rondo_agreement_message(runtime, source, data, bytes);
        break;
    default:
        rondo_log(RONDO_LOG_WARN, runtime->rank, "dropped a message of unknown type %u from rank %d", type, source);
    }
}

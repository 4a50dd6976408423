/*
 * Types of the messages that runtimes send each other over the control plane (lib/bootstrap/control.h). Each room handles
 * the types of its own.
 */
#ifndef RONDO_LIB_CONTEXT_MESSAGES_H
#define RONDO_LIB_CONTEXT_MESSAGES_H

#include "lib/bootstrap/control.h"

enum rondo_message {
    RONDO_MESSAGE_MAIL = RONDO_CONTROL_FIRST_USER_TYPE,
    RONDO_MESSAGE_CONNECT,
    RONDO_MESSAGE_CONNECTED,
    RONDO_MESSAGE_CLOSE,
    RONDO_MESSAGE_CHECK,
    RONDO_MESSAGE_VERDICT,
    RONDO_MESSAGE_HANG_ASK,
    RONDO_MESSAGE_HANG_QUERY,
    RONDO_MESSAGE_HANG_STATE,
    RONDO_MESSAGE_HANG_REPORT,
    RONDO_MESSAGE_HANG_ANSWER,
    RONDO_MESSAGE_ENDPOINT_ASK,
    RONDO_MESSAGE_ENDPOINT,
    RONDO_MESSAGE_FAILURE,
    RONDO_MESSAGE_AGREEMENT
};

#endif

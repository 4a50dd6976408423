/*
 * From the handles that users have to the objects that they stand for. Each public function begins with one of these, and
 * passes its own name for the message; from there on the library has the object alone. Relies on lib/base/handle.h.
 */
#ifndef RONDO_LIB_CONTEXT_HANDLES_H
#define RONDO_LIB_CONTEXT_HANDLES_H

#include "lib/base/handle.h"

struct rondo_runtime;
struct rondo_comm;
struct rondo_request;

/* Each sets *object to what the handle stands for. Else *object is NULL, and the result as rondo_handle_refuse says. */
static inline rondo_result_t rondo_runtime_of(rondo_t handle, const char *function, struct rondo_runtime **object)
{
    *object = rondo_handle_find(handle, RONDO_HANDLE_RUNTIME);
    return *object != NULL ? RONDO_SUCCESS : rondo_handle_refuse(handle, RONDO_HANDLE_RUNTIME, function);
}

static inline rondo_result_t rondo_comm_of(rondo_comm_t handle, const char *function, struct rondo_comm **object)
{
    *object = rondo_handle_find(handle, RONDO_HANDLE_COMM);
    return *object != NULL ? RONDO_SUCCESS : rondo_handle_refuse(handle, RONDO_HANDLE_COMM, function);
}

static inline rondo_result_t rondo_request_of(rondo_request_t handle, const char *function, struct rondo_request **object)
{
    *object = rondo_handle_find(handle, RONDO_HANDLE_REQUEST);
    return *object != NULL ? RONDO_SUCCESS : rondo_handle_refuse(handle, RONDO_HANDLE_REQUEST, function);
}

#endif

/* The functions by which transports and the proxy, which lie below the library, ask something of it. */
#ifndef RONDO_LIB_RUNTIME_UPCALLS_H
#define RONDO_LIB_RUNTIME_UPCALLS_H

#include "lib/context/runtime.h"

extern const struct rondo_transport_upcalls rondo_upcalls;

#endif

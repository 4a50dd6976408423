/*
 * UCX's own calls that injection can make fail, and the ways, as in functions.h: what a peer or the network between can do to a
 * connection. The linker's --wrap does not reach another library, so ucx_wrappers.c defines libc's functions themselves.
 *
 * Not here: send, with which UCX makes connections. UCX 1.13 ends the process by assertions of its own where it fails between
 * the first message to a peer and that peer's answer (docs/guide/limits.md); UCX 1.22 passes there.
 */
#ifndef RONDO_TEST_INJECTION_UCX_FUNCTIONS_H
#define RONDO_TEST_INJECTION_UCX_FUNCTIONS_H

/* clang-format off */
#define INJECT_UCX_FUNCTIONS(X)                                 \
    X(ucx_connect, ECONNREFUSED, ETIMEDOUT)                     \
    X(ucx_recv, ECONNRESET, EINTR, INJECT_SHORT, INJECT_END)    \
    X(ucx_sendmsg, ECONNRESET, EINTR)
/* clang-format on */

#endif

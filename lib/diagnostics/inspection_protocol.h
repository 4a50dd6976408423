/*
 * How a program asks a rank what it does: over a stream socket without a file (abstract, unix(7)), whose name is
 * RONDO_INSPECTION_NAME, the process and a number, as in "rondo-inspection.4711.0". A rank answers to its own user and to root;
 * who asks should ask the kernel for the other end's user as well, because any process may take a name. A request is one line;
 * the answer ends with the connection: job      {"job", "rank", "size", "pid"}: who this is state    {"job", "size", "asked",
 * "silent", "ranks"}: of the whole job; silent: ranks that did not answer within 2 s; each rank's state is composed in
 * lib/diagnostics/rank_state.c report   the text of rondo_report
 */
#ifndef RONDO_LIB_DIAGNOSTICS_INSPECTION_PROTOCOL_H
#define RONDO_LIB_DIAGNOSTICS_INSPECTION_PROTOCOL_H

#define RONDO_INSPECTION_NAME "rondo-inspection"

#endif

/* A rank's way to the root: finding it (or starting it, for rank 0), proving itself, and waiting until all have come. */
#ifndef RONDO_LIB_BOOTSTRAP_RENDEZVOUS_H
#define RONDO_LIB_BOOTSTRAP_RENDEZVOUS_H

#include "lib/bootstrap/address.h"
#include "lib/bootstrap/control.h"
#include "lib/bootstrap/frame_connection.h"

/* Blocks for at most options->connect_timeout and a little. On success the wire is open, may hold input already, and *local
 * says whether the root is a thread of this process. */
rondo_result_t rondo_rendezvous_attend(const struct rondo_control_options *options, struct rondo_frame_connection *frames,
                                       int *local);

/* rank 0's part where there is no unique id (lib/bootstrap/rendezvous_root.c): starts the root, and returns this rank's
 * connection to it. */
rondo_result_t rondo_rendezvous_start_root(const struct rondo_control_options *options, const struct rondo_hmac *secret,
                                           int64_t deadline, int *fd);
/* The places where the root of this job may be: of a Unix socket's names all that rank 0 may have had to choose from. */
enum { RONDO_RENDEZVOUS_PLACES = 16 };
rondo_result_t rondo_rendezvous_places(const struct rondo_control_options *options, int64_t deadline,
                                       struct rondo_address places[RONDO_RENDEZVOUS_PLACES], int *count);
/* Sleeps, but not past the deadline. */
void rondo_rendezvous_pause(int milliseconds, int64_t deadline);

#endif

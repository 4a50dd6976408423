/*
 * One authenticated connection of the control plane, as both of its ends see it: frames with a type, source, destination,
 * length, sequence number and tag on a non-blocking stream socket, and the buffers on both sides of it.
 *
 * A frame is believed only after its tag, which covers its place in the stream, has been checked; so nothing can be forged,
 * altered, repeated, reordered or left out unnoticed. Contents are not encrypted.
 * Sending and receiving touch different fields: one thread may send while another receives, but no two may do the same.
 */
#ifndef RONDO_LIB_BOOTSTRAP_FRAME_CONNECTION_H
#define RONDO_LIB_BOOTSTRAP_FRAME_CONNECTION_H

#include "lib/base/sha256.h"
#include <stddef.h>
#include <stdint.h>

/* Types below RONDO_CONTROL_FIRST_USER_TYPE beside enum rondo_control_event; they never reach a handler. */
enum rondo_frame_type {
    RONDO_FRAME_READY = 4,   /* root to rank: all have met */
    RONDO_FRAME_FAILED = 5,  /* root to rank: they have not; data is the reason as text */
    RONDO_FRAME_GOODBYE = 6, /* rank to root: closing; the root ends the connection in answer */
    RONDO_FRAME_BEAT = 7,    /* either way: a sign of life (lib/bootstrap/heartbeat.h) */
};

enum { RONDO_FRAME_HEADER = 24, RONDO_FRAME_TAG = 16 };

struct rondo_frame_chunk;
struct rondo_frame_connection {
    int fd;
    struct rondo_hmac send_key, receive_key;
    uint64_t sent, received; /* frames */
    unsigned char *input;    /* received and not yet taken: input[begin, end) */
    size_t begin, end, capacity;
    struct rondo_frame_chunk *first, *last; /* to be sent */
    size_t queued;                          /* bytes in them */
};

struct rondo_frame {
    uint32_t type;
    int32_t source, destination;
    uint32_t bytes;
    const unsigned char *data; /* valid until the next fill */
};

/* Takes ownership of fd. */
void rondo_frame_connection_open(struct rondo_frame_connection *frames, int fd, const struct rondo_hmac *send_key,
                                 const struct rondo_hmac *receive_key);
/* Ends the connection for the other side too, even where a forked child has inherited the descriptor. */
void rondo_frame_connection_close(struct rondo_frame_connection *frames);

/* Appends a frame to what is to be sent. 0, or -1 when out of memory. */
int rondo_frame_connection_put(struct rondo_frame_connection *frames, uint32_t type, int source, int destination,
                               const void *data, size_t bytes);
/* Sends what the socket takes. 1: all is sent; 0: some is left; -1: the connection is broken. */
int rondo_frame_connection_flush(struct rondo_frame_connection *frames);

/* One read from the socket. 1: something came; 0: nothing there; -1: the connection has ended or broken, or out of memory. */
int rondo_frame_connection_fill(struct rondo_frame_connection *frames);
/* 1: the next frame; 0: it is not there as a whole yet; -1: what is there was not written by the other end for this place. */
int rondo_frame_connection_next(struct rondo_frame_connection *frames, struct rondo_frame *frame);

/* Little-endian, wherever this runs. */
void rondo_frame_store32(unsigned char *to, uint32_t value);
uint32_t rondo_frame_load32(const unsigned char *from);

#endif

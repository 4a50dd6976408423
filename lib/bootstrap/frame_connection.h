/*
 * One authenticated connection of the control plane, as both of its ends see it: frames with a type, source, destination,
 * length, sequence number and tag on a non-blocking stream socket, and the buffers on both sides of it. Relies on
 * lib/base/sha256.h for the tags, or lib/base/cipher.h for encryption, and on lib/bootstrap/handshake.h for the keys.
 *
 * A frame is believed only after its tag has been checked. The tag covers the frame's number in the stream, and each direction
 * has a key of its own, so an attacker on the network can neither forge, alter, repeat, reorder nor leave out a frame
 * unnoticed, nor send it back to its sender. All but the length is encrypted where the keys say so (RONDO_ENCRYPT).
 *
 * Sending (put, flush) and receiving (fill, next) touch different fields: one thread may send while another receives, but no
 * two threads may do the same at once. Opening and closing need both.
 */
#ifndef RONDO_LIB_BOOTSTRAP_FRAME_CONNECTION_H
#define RONDO_LIB_BOOTSTRAP_FRAME_CONNECTION_H

#include "lib/base/cipher.h"
#include "lib/base/sha256.h"
#include <stddef.h>
#include <stdint.h>

/* Types below RONDO_CONTROL_FIRST_USER_TYPE beside enum rondo_control_event; they never reach a handler. */
enum rondo_frame_type {
    /* between a rank and the root (lib/bootstrap/root_steps.c) */
    RONDO_FRAME_JOB = 4,       /* root to rank: the job's nonce, and where to listen */
    RONDO_FRAME_LISTENING = 5, /* rank to root: the port (4 bytes) */
    RONDO_FRAME_PLACES = 6,    /* root to rank: its address and its neighbours', if any; and between ranks, while a job forms */
    RONDO_FRAME_LINKED = 7,    /* rank to root: it is connected to its neighbours, and knows where all ranks listen */
    RONDO_FRAME_READY = 8,     /* root to rank: the job has formed */
    RONDO_FRAME_FAILED = 9,    /* either way: the job cannot form; data is the reason as text */
    RONDO_FRAME_FIRST_ROOT = 17, /* rank to root: where the first root of the job is (lib/bootstrap/first_root.h) */
    RONDO_FRAME_SHARE = 18, /* root to first root: all ranks of its share have joined; 1 (4 bytes) if some by TCP, else 0 */
    /* between two ranks (lib/control/links.c) */
    RONDO_FRAME_BEAT = 10,      /* a sign of life (lib/control/heartbeat.h), with how many frames were taken (4 bytes) */
    RONDO_FRAME_BEGIN = 11,     /* the first: notices that come before, as source and number (4 bytes each) */
    RONDO_FRAME_END = 12,       /* the last, because the connection is used too seldom */
    RONDO_FRAME_NEIGHBOUR = 13, /* what is for all ranks passes here, too */
    RONDO_FRAME_GOODBYE = 14,   /* a notice: its source leaves */
    RONDO_FRAME_AWAIT = 15, /* a notice: its source connects to these ranks (4 bytes each), to whom it has something to say */
    RONDO_FRAME_RENEW = 16, /* the first of a connection that was made again: how many frames were taken (4 bytes) */
};

enum { RONDO_FRAME_HEADER = 24, RONDO_FRAME_TAG = 16 }; /* bytes */
enum { RONDO_FRAME_SPARE_DATA = 4096 };                 /* bytes of data of a frame for which memory is set aside */

/* The key of one direction: of the cipher if frames are encrypted, else of the tags. */
struct rondo_frame_key {
    int encrypts;
    struct rondo_hmac hmac;
    unsigned char cipher[RONDO_CIPHER_KEY];
};

struct rondo_frame_chunk;
struct rondo_frame_connection {
    int fd; /* -1: closed */
    struct rondo_frame_key send_key, receive_key;
    uint64_t sent, received; /* frames */
    unsigned char *input;    /* received and not yet taken: input[begin, end) */
    size_t begin, end, capacity;
    struct rondo_frame_chunk *first, *last; /* to be sent */
    size_t queued;                          /* bytes in them */
    struct rondo_frame_chunk *spare;        /* set aside for when memory is out; NULL: none */
};

struct rondo_frame {
    uint32_t type;
    int32_t source, destination;
    uint32_t bytes;
    const unsigned char *data; /* 8-byte aligned; valid until the next fill */
};

/* Makes a connection of the socket fd, which it owns from then on. The keys are copied. */
void rondo_frame_connection_open(struct rondo_frame_connection *connection, int fd, const struct rondo_frame_key *send_key,
                                 const struct rondo_frame_key *receive_key);
/* Ends the connection for the other side too, even where a forked child has inherited the descriptor; frees the buffers and
 * clears the keys. May be called again. */
void rondo_frame_connection_close(struct rondo_frame_connection *connection);

/* Appends a frame to what is to be sent; data is copied. Returns 0, or -1 if memory is out. bytes is at most
 * RONDO_CONTROL_MESSAGE_MAX, else the other end breaks the connection. */
int rondo_frame_connection_put(struct rondo_frame_connection *connection, uint32_t type, int source, int destination,
                               const void *data, size_t bytes);
/* Sets memory aside for rondo_frame_connection_put_surely, unless that has been done already. Returns 0, or -1 if memory is
 * out. */
int rondo_frame_connection_set_aside(struct rondo_frame_connection *connection);
/* As put, for a frame that must not fail for want of memory: uses what is set aside if there is no other. Returns -1 if that
 * has been used up. bytes is at most RONDO_FRAME_SPARE_DATA. */
int rondo_frame_connection_put_surely(struct rondo_frame_connection *connection, uint32_t type, int source, int destination,
                                      const void *data, size_t bytes);
/* Sends what the socket takes. Returns 1 if all is sent, 0 if some is left, -1 if the connection is broken. */
int rondo_frame_connection_flush(struct rondo_frame_connection *connection);

/* Reads from the socket once. Returns 1 if bytes came, 0 if none are there, -1 if the connection has ended or broken or memory
 * is out. The buffer grows with what arrives and is bounded by the largest frame. */
int rondo_frame_connection_fill(struct rondo_frame_connection *connection);
/* Takes the next frame out of what was read. Returns 1 if there is one; 0 if it has not arrived as a whole; -1 if the bytes
 * were not written by the other end for this place: the connection must then be closed. */
int rondo_frame_connection_next(struct rondo_frame_connection *connection, struct rondo_frame *frame);

/* Little-endian, on any machine. */
void rondo_frame_store32(unsigned char *to, uint32_t value);
uint32_t rondo_frame_load32(const unsigned char *from);

#endif

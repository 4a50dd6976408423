/* See wire.h. A frame: length, type, source, destination (32 bits each), sequence number (64), data, zeros
 * up to a multiple of 8 (so that data is always aligned), and the first 16 bytes of the HMAC-SHA256 of all before them. */
#include "lib/bootstrap/frame_connection.h"

#include "lib/bootstrap/control.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

enum {
    CHUNK_BYTES = 16 << 10, /* small frames share a chunk, so that they leave in one write */
    INPUT_BYTES = 16 << 10, /* at first; doubled while reads fill it, */
    INPUT_MOST = 256 << 10, /* up to this, or to one whole frame */
    VECTOR = 64,            /* chunks handed to one write */
};

struct rondo_wire_chunk {
    struct rondo_wire_chunk *next;
    size_t begin, end, capacity; /* bytes[begin, end) are still to be sent */
    unsigned char bytes[];
};

void rondo_wire_store32(unsigned char *to, uint32_t value)
{
    for (int i = 0; i < 4; i++)
        to[i] = (unsigned char) (value >> (8 * i));
}

uint32_t rondo_wire_load32(const unsigned char *from)
{
    return (uint32_t) from[0] | (uint32_t) from[1] << 8 | (uint32_t) from[2] << 16 | (uint32_t) from[3] << 24;
}

static size_t padded(size_t bytes)
{
    return (bytes + 7) & ~(size_t) 7;
}

static void store64(unsigned char *to, uint64_t value)
{
    rondo_wire_store32(to, (uint32_t) value);
    rondo_wire_store32(to + 4, (uint32_t) (value >> 32));
}

static uint64_t load64(const unsigned char *from)
{
    return rondo_wire_load32(from) | (uint64_t) rondo_wire_load32(from + 4) << 32;
}

void rondo_wire_open(struct rondo_wire *wire, int fd, const struct rondo_hmac *send_key, const struct rondo_hmac *receive_key)
{
    memset(wire, 0, sizeof(*wire));
    wire->fd = fd;
    wire->send_key = *send_key;
    wire->receive_key = *receive_key;
}

static void drop_output(struct rondo_wire *wire)
{
    while (wire->first != NULL) {
        struct rondo_wire_chunk *chunk = wire->first;
        wire->first = chunk->next;
        free(chunk);
    }
    wire->last = NULL;
    wire->queued = 0;
}

void rondo_wire_close(struct rondo_wire *wire)
{
    if (wire->fd >= 0) {
        shutdown(wire->fd, SHUT_RDWR);
        close(wire->fd);
    }
    wire->fd = -1;
    drop_output(wire);
    free(wire->input);
    wire->input = NULL;
    wire->begin = wire->end = wire->capacity = 0;
    explicit_bzero(&wire->send_key, sizeof(wire->send_key));
    explicit_bzero(&wire->receive_key, sizeof(wire->receive_key));
}

/* bytes contiguous bytes at the end of the queue. */
static unsigned char *reserve(struct rondo_wire *wire, size_t bytes)
{
    struct rondo_wire_chunk *last = wire->last;
    if (last == NULL || last->capacity - last->end < bytes) {
        size_t capacity = bytes > CHUNK_BYTES ? bytes : CHUNK_BYTES;
        last = malloc(sizeof(*last) + capacity);
        if (last == NULL)
            return NULL;
        *last = (struct rondo_wire_chunk){.capacity = capacity};
        if (wire->last != NULL)
            wire->last->next = last;
        else
            wire->first = last;
        wire->last = last;
    }
    unsigned char *place = last->bytes + last->end;
    last->end += bytes;
    wire->queued += bytes;
    return place;
}

int rondo_wire_put(struct rondo_wire *wire, uint32_t type, int source, int destination, const void *data, size_t bytes)
{
    unsigned char tag[RONDO_SHA256_BYTES];
    size_t covered = RONDO_WIRE_HEADER + padded(bytes);
    unsigned char *frame = reserve(wire, covered + RONDO_WIRE_TAG);
    if (frame == NULL)
        return -1;
    rondo_wire_store32(frame, (uint32_t) bytes);
    rondo_wire_store32(frame + 4, type);
    rondo_wire_store32(frame + 8, (uint32_t) source);
    rondo_wire_store32(frame + 12, (uint32_t) destination);
    store64(frame + 16, wire->sent++);
    if (bytes > 0)
        memcpy(frame + RONDO_WIRE_HEADER, data, bytes);
    memset(frame + RONDO_WIRE_HEADER + bytes, 0, padded(bytes) - bytes);
    struct rondo_hmac hmac = wire->send_key;
    rondo_hmac_add(&hmac, frame, covered);
    rondo_hmac_end(&hmac, tag);
    memcpy(frame + covered, tag, RONDO_WIRE_TAG);
    return 0;
}

static void consume(struct rondo_wire *wire, size_t sent)
{
    wire->queued -= sent;
    while (wire->first != NULL) {
        struct rondo_wire_chunk *chunk = wire->first;
        size_t part = chunk->end - chunk->begin < sent ? chunk->end - chunk->begin : sent;
        chunk->begin += part;
        sent -= part;
        if (chunk->begin < chunk->end)
            return;
        /* One chunk of the usual size stays for the next frame. */
        if (chunk->next == NULL && chunk->capacity == CHUNK_BYTES) {
            chunk->begin = chunk->end = 0;
            return;
        }
        wire->first = chunk->next;
        if (wire->first == NULL)
            wire->last = NULL;
        free(chunk);
    }
}

int rondo_wire_flush(struct rondo_wire *wire)
{
    while (wire->queued > 0) {
        struct iovec parts[VECTOR];
        struct msghdr message = {.msg_iov = parts};
        for (struct rondo_wire_chunk *chunk = wire->first; chunk != NULL && message.msg_iovlen < VECTOR; chunk = chunk->next)
            parts[message.msg_iovlen++] = (struct iovec){chunk->bytes + chunk->begin, chunk->end - chunk->begin};
        ssize_t sent = sendmsg(wire->fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent < 0)
            return errno == EAGAIN || errno == EWOULDBLOCK ? 0 : -1;
        consume(wire, (size_t) sent);
    }
    return 1;
}

static size_t frame_bytes(const struct rondo_wire *wire)
{
    if (wire->end - wire->begin < RONDO_WIRE_HEADER)
        return RONDO_WIRE_HEADER;
    return RONDO_WIRE_HEADER + padded(rondo_wire_load32(wire->input + wire->begin)) + RONDO_WIRE_TAG;
}

/* Room for the rest of the frame that has begun to arrive, and for a large read in general. */
static int make_room(struct rondo_wire *wire)
{
    size_t held = wire->end - wire->begin;
    size_t needed = frame_bytes(wire), capacity = wire->capacity;
    int was_filled = wire->end == capacity;
    if (held == 0) {
        wire->begin = wire->end = 0;
        /* What one long frame needed is not kept for the short ones. */
        if (capacity > INPUT_MOST) {
            free(wire->input);
            wire->input = NULL;
            capacity = wire->capacity = 0;
        }
    }
    if (capacity == 0)
        capacity = INPUT_BYTES;
    else if (was_filled && capacity < INPUT_MOST)
        capacity *= 2;
    if (capacity < needed)
        capacity = needed;
    if (capacity != wire->capacity) {
        unsigned char *grown = malloc(capacity);
        if (grown == NULL)
            return -1;
        if (held > 0)
            memcpy(grown, wire->input + wire->begin, held);
        free(wire->input);
        wire->input = grown;
        wire->capacity = capacity;
        wire->begin = 0;
        wire->end = held;
    } else if (wire->begin > 0 && wire->capacity - wire->begin < needed) {
        memmove(wire->input, wire->input + wire->begin, held);
        wire->begin = 0;
        wire->end = held;
    }
    return 0;
}

int rondo_wire_fill(struct rondo_wire *wire)
{
    if (make_room(wire) != 0)
        return -1;
    ssize_t got;
    do
        got = recv(wire->fd, wire->input + wire->end, wire->capacity - wire->end, MSG_DONTWAIT);
    while (got < 0 && errno == EINTR);
    if (got < 0)
        return errno == EAGAIN || errno == EWOULDBLOCK ? 0 : -1;
    wire->end += (size_t) got;
    return got > 0 ? 1 : -1;
}

int rondo_wire_next(struct rondo_wire *wire, struct rondo_wire_frame *frame)
{
    unsigned char tag[RONDO_SHA256_BYTES];
    size_t held = wire->end - wire->begin;
    if (held < RONDO_WIRE_HEADER)
        return 0;
    const unsigned char *header = wire->input + wire->begin;
    uint32_t bytes = rondo_wire_load32(header);
    /* The only thing acted upon before the tag is checked, and all it can do is to make this end wait for so much. */
    if (bytes > RONDO_CONTROL_MESSAGE_MAX)
        return -1;
    size_t covered = RONDO_WIRE_HEADER + padded(bytes);
    if (held < covered + RONDO_WIRE_TAG)
        return 0;
    struct rondo_hmac hmac = wire->receive_key;
    rondo_hmac_add(&hmac, header, covered);
    rondo_hmac_end(&hmac, tag);
    if (!rondo_sha256_equal(tag, header + covered, RONDO_WIRE_TAG) || load64(header + 16) != wire->received)
        return -1;
    wire->received++;
    wire->begin += covered + RONDO_WIRE_TAG;
    frame->bytes = bytes;
    frame->type = rondo_wire_load32(header + 4);
    frame->source = (int32_t) rondo_wire_load32(header + 8);
    frame->destination = (int32_t) rondo_wire_load32(header + 12);
    frame->data = header + RONDO_WIRE_HEADER;
    return 1;
}

/*
 * See lib/bootstrap/frame_connection.h. A frame: length, type, source, destination (32 bits each), sequence number (64), data,
 * zeros up to a multiple of 8 (so that data is always aligned), and the first 16 bytes of the HMAC-SHA256 of all before them.
 * An encrypted frame has the same form: all after the length is the cipher's, by the number of the frame, and so is the tag.
 */
#include "lib/bootstrap/frame_connection.h"

#include "lib/bootstrap/job.h"
#include "lib/bootstrap/process_socket.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

enum {
    CHUNK_BYTES = 16 << 10, /* small frames share a chunk, so that they leave in one write */
    INPUT_BYTES = 16 << 10, /* at first; doubled while reads fill it, */
    INPUT_MOST = 256 << 10, /* up to this, or to one whole frame */
    VECTOR = 64,            /* chunks handed to one write */
};

struct rondo_frame_chunk {
    struct rondo_frame_chunk *next;
    size_t begin, end, capacity; /* data[begin, end) are still to be sent */
    unsigned char data[];
};

void rondo_frame_store32(unsigned char *to, uint32_t value)
{
    for (int i = 0; i < 4; i++)
        to[i] = (unsigned char) (value >> (8 * i));
}

uint32_t rondo_frame_load32(const unsigned char *from)
{
    return (uint32_t) from[0] | (uint32_t) from[1] << 8 | (uint32_t) from[2] << 16 | (uint32_t) from[3] << 24;
}

static size_t padded(size_t bytes)
{
    return (bytes + 7) & ~(size_t) 7;
}

static void store64(unsigned char *to, uint64_t value)
{
    rondo_frame_store32(to, (uint32_t) value);
    rondo_frame_store32(to + 4, (uint32_t) (value >> 32));
}

static uint64_t load64(const unsigned char *from)
{
    return rondo_frame_load32(from) | (uint64_t) rondo_frame_load32(from + 4) << 32;
}

/* ---- tags and encryption ---- */

enum {
    CLEAR = 4, /* bytes of a frame that are never encrypted: the length */
};
_Static_assert((int) RONDO_FRAME_TAG == (int) RONDO_CIPHER_TAG, "frames have one form");

static void tag_of(const struct rondo_frame_key *key, const unsigned char *frame, size_t covered,
                   unsigned char tag[RONDO_SHA256_BYTES])
{
    struct rondo_hmac hmac = key->hmac;
    rondo_hmac_add(&hmac, frame, covered);
    rondo_hmac_end(&hmac, tag);
}

static void protect(const struct rondo_frame_key *key, uint64_t number, unsigned char *frame, size_t covered)
{
    unsigned char tag[RONDO_SHA256_BYTES];
    struct rondo_cipher_message message = {key->cipher, number, frame, CLEAR};
    if (key->encrypts) {
        rondo_cipher_seal(&message, frame + CLEAR, frame + CLEAR, covered - CLEAR, frame + covered);
    } else {
        tag_of(key, frame, covered, tag);
        memcpy(frame + covered, tag, RONDO_FRAME_TAG);
    }
}

/* Returns whether the frame is what the other end has sent as this number; it is then in plain text. */
static int verify(const struct rondo_frame_key *key, uint64_t number, unsigned char *frame, size_t covered)
{
    unsigned char tag[RONDO_SHA256_BYTES];
    struct rondo_cipher_message message = {key->cipher, number, frame, CLEAR};
    if (key->encrypts)
        return rondo_cipher_open(&message, frame + CLEAR, frame + CLEAR, covered - CLEAR, frame + covered);
    tag_of(key, frame, covered, tag);
    return rondo_sha256_equal(tag, frame + covered, RONDO_FRAME_TAG);
}

/* ---- the connection ---- */

void rondo_frame_connection_open(struct rondo_frame_connection *connection, int fd, const struct rondo_frame_key *send_key,
                                 const struct rondo_frame_key *receive_key)
{
    memset(connection, 0, sizeof(*connection));
    connection->fd = fd;
    connection->send_key = *send_key;
    connection->receive_key = *receive_key;
}

static void drop_output(struct rondo_frame_connection *connection)
{
    while (connection->first != NULL) {
        struct rondo_frame_chunk *chunk = connection->first;
        connection->first = chunk->next;
        free(chunk);
    }
    connection->last = NULL;
    connection->queued = 0;
    free(connection->spare);
    connection->spare = NULL;
}

void rondo_frame_connection_close(struct rondo_frame_connection *connection)
{
    if (connection->fd >= 0) {
        shutdown(connection->fd, SHUT_RDWR);
        rondo_process_socket_close(connection->fd);
    }
    connection->fd = -1;
    drop_output(connection);
    free(connection->input);
    connection->input = NULL;
    connection->begin = connection->end = connection->capacity = 0;
    explicit_bzero(&connection->send_key, sizeof(connection->send_key));
    explicit_bzero(&connection->receive_key, sizeof(connection->receive_key));
}

static struct rondo_frame_chunk *make_chunk(size_t capacity)
{
    struct rondo_frame_chunk *chunk = malloc(sizeof(*chunk) + capacity);
    if (chunk != NULL)
        *chunk = (struct rondo_frame_chunk){.capacity = capacity};
    return chunk;
}

static void append(struct rondo_frame_connection *connection, struct rondo_frame_chunk *chunk)
{
    if (connection->last != NULL)
        connection->last->next = chunk;
    else
        connection->first = chunk;
    connection->last = chunk;
}

/* Returns room for `bytes` contiguous bytes at the end of the queue, or NULL if memory is out. */
static unsigned char *reserve(struct rondo_frame_connection *connection, size_t bytes)
{
    struct rondo_frame_chunk *last = connection->last;
    if (last == NULL || last->capacity - last->end < bytes) {
        last = make_chunk(bytes > CHUNK_BYTES ? bytes : CHUNK_BYTES);
        if (last == NULL)
            return NULL;
        append(connection, last);
    }
    unsigned char *place = last->data + last->end;
    last->end += bytes;
    connection->queued += bytes;
    return place;
}

static void store_header(unsigned char *to, const struct rondo_frame *frame, uint64_t number)
{
    rondo_frame_store32(to, frame->bytes);
    rondo_frame_store32(to + 4, frame->type);
    rondo_frame_store32(to + 8, (uint32_t) frame->source);
    rondo_frame_store32(to + 12, (uint32_t) frame->destination);
    store64(to + 16, number);
}

int rondo_frame_connection_put(struct rondo_frame_connection *connection, uint32_t type, int source, int destination,
                               const void *data, size_t bytes)
{
    size_t covered = RONDO_FRAME_HEADER + padded(bytes);
    unsigned char *frame = reserve(connection, covered + RONDO_FRAME_TAG);
    if (frame == NULL)
        return -1;
    store_header(frame, &(struct rondo_frame){type, source, destination, (uint32_t) bytes, NULL}, connection->sent);
    if (bytes > 0)
        memcpy(frame + RONDO_FRAME_HEADER, data, bytes);
    memset(frame + RONDO_FRAME_HEADER + bytes, 0, padded(bytes) - bytes);
    protect(&connection->send_key, connection->sent++, frame, covered);
    return 0;
}

int rondo_frame_connection_set_aside(struct rondo_frame_connection *connection)
{
    if (connection->spare == NULL)
        connection->spare = make_chunk(CHUNK_BYTES);
    return connection->spare != NULL ? 0 : -1;
}

int rondo_frame_connection_put_surely(struct rondo_frame_connection *connection, uint32_t type, int source, int destination,
                                      const void *data, size_t bytes)
{
    if (rondo_frame_connection_put(connection, type, source, destination, data, bytes) == 0)
        return 0;
    if (connection->spare == NULL)
        return -1;
    append(connection, connection->spare); /* of the usual size, so consume keeps it for later frames */
    connection->spare = NULL;
    return rondo_frame_connection_put(connection, type, source, destination, data, bytes);
}

/* Drops so many bytes from the front of the queue. */
static void consume(struct rondo_frame_connection *connection, size_t sent)
{
    connection->queued -= sent;
    while (connection->first != NULL) {
        struct rondo_frame_chunk *chunk = connection->first;
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
        connection->first = chunk->next;
        if (connection->first == NULL)
            connection->last = NULL;
        free(chunk);
    }
}

int rondo_frame_connection_flush(struct rondo_frame_connection *connection)
{
    while (connection->queued > 0) {
        struct iovec parts[VECTOR];
        struct msghdr message = {.msg_iov = parts};
        for (struct rondo_frame_chunk *chunk = connection->first; chunk != NULL && message.msg_iovlen < VECTOR;
             chunk = chunk->next)
            parts[message.msg_iovlen++] = (struct iovec){chunk->data + chunk->begin, chunk->end - chunk->begin};
        ssize_t sent = sendmsg(connection->fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent < 0)
            return errno == EAGAIN || errno == EWOULDBLOCK ? 0 : -1;
        consume(connection, (size_t) sent);
    }
    return 1;
}

static size_t frame_bytes(const struct rondo_frame_connection *connection)
{
    if (connection->end - connection->begin < RONDO_FRAME_HEADER)
        return RONDO_FRAME_HEADER;
    return RONDO_FRAME_HEADER + padded(rondo_frame_load32(connection->input + connection->begin)) + RONDO_FRAME_TAG;
}

/* Makes room for the rest of the frame that has begun to arrive, and for a large read in general. Returns -1 if memory is out.
 * The length of a frame is not authenticated yet here: fill runs after next, which has refused lengths beyond
 * RONDO_CONTROL_MESSAGE_MAX, so that bounds the buffer. */
static int make_room(struct rondo_frame_connection *connection)
{
    size_t held = connection->end - connection->begin;
    size_t needed = frame_bytes(connection), capacity = connection->capacity;
    int was_filled = connection->end == capacity;
    if (held == 0) {
        connection->begin = connection->end = 0;
        /* What one long frame needed is freed before the short ones. */
        if (capacity > INPUT_MOST) {
            free(connection->input);
            connection->input = NULL;
            capacity = connection->capacity = 0;
        }
    }
    if (capacity == 0)
        capacity = INPUT_BYTES;
    else if (was_filled && capacity < INPUT_MOST)
        capacity *= 2;
    if (capacity < needed)
        capacity = needed;
    if (capacity != connection->capacity) {
        unsigned char *grown = malloc(capacity);
        if (grown == NULL)
            return -1;
        if (held > 0)
            memcpy(grown, connection->input + connection->begin, held);
        free(connection->input);
        connection->input = grown;
        connection->capacity = capacity;
        connection->begin = 0;
        connection->end = held;
    } else if (connection->begin > 0 && connection->capacity - connection->begin < needed) {
        memmove(connection->input, connection->input + connection->begin, held);
        connection->begin = 0;
        connection->end = held;
    }
    return 0;
}

int rondo_frame_connection_fill(struct rondo_frame_connection *connection)
{
    if (make_room(connection) != 0)
        return -1;
    ssize_t got;
    do
        got = recv(connection->fd, connection->input + connection->end, connection->capacity - connection->end, MSG_DONTWAIT);
    while (got < 0 && errno == EINTR);
    if (got < 0)
        return errno == EAGAIN || errno == EWOULDBLOCK ? 0 : -1;
    connection->end += (size_t) got;
    return got > 0 ? 1 : -1;
}

int rondo_frame_connection_next(struct rondo_frame_connection *connection, struct rondo_frame *frame)
{
    size_t held = connection->end - connection->begin;
    if (held < RONDO_FRAME_HEADER)
        return 0;
    unsigned char *header = connection->input + connection->begin;
    uint32_t bytes = rondo_frame_load32(header);
    /* The length alone is acted upon before the tag is checked. All a false one can do is to make this end wait for so many
     * bytes. */
    if (bytes > RONDO_CONTROL_MESSAGE_MAX)
        return -1;
    size_t covered = RONDO_FRAME_HEADER + padded(bytes);
    if (held < covered + RONDO_FRAME_TAG)
        return 0;
    if (!verify(&connection->receive_key, connection->received, header, covered) || load64(header + 16) != connection->received)
        return -1;
    connection->received++;
    connection->begin += covered + RONDO_FRAME_TAG;
    frame->bytes = bytes;
    frame->type = rondo_frame_load32(header + 4);
    frame->source = (int32_t) rondo_frame_load32(header + 8);
    frame->destination = (int32_t) rondo_frame_load32(header + 12);
    frame->data = header + RONDO_FRAME_HEADER;
    return 1;
}

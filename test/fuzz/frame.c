/*
 * The control plane's frames, as the receiving end reads them. The input is a script of what happens on the connection: its
 * sender puts frames, an attacker without the key alters or adds bytes, or a sender with the key writes a header as it likes.
 * Without the key no frame is accepted but the next one that was put; with it, what is accepted is in bounds.
 */
#include "lib/control/control.h"
#include "lib/bootstrap/frame_connection.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

enum { FRAMES_MOST = 64, DATA_MOST = 1024, STREAM_MOST = 65536 };

struct put {
    uint32_t type;
    int source, destination;
    size_t bytes;
    uint8_t data[DATA_MOST];
};

struct wire {
    struct rondo_frame_connection sender, receiver;
    struct rondo_frame_key key;
    int from_sender, to_receiver; /* the attacker's ends */
    struct put puts[FRAMES_MOST];
    int count, accepted;
    int has_key; /* the attacker has used the key, so that anything may be accepted */
    int broken;  /* the receiver has given up */
};

static void receive(struct wire *wire)
{
    struct rondo_frame frame;
    int more = 1;
    while (!wire->broken && more > 0) {
        more = rondo_frame_connection_fill(&wire->receiver);
        int got;
        while ((got = rondo_frame_connection_next(&wire->receiver, &frame)) == 1) {
            uint32_t sum = 0;
            if (frame.bytes > RONDO_CONTROL_MESSAGE_MAX || (uintptr_t) frame.data % 8 != 0)
                abort();
            for (uint32_t i = 0; i < frame.bytes; i++)
                sum += frame.data[i]; /* all of it can be read */
            __asm__ volatile("" : : "r"(sum));
            if (wire->has_key)
                continue;
            const struct put *put = &wire->puts[wire->accepted++];
            if (wire->accepted > wire->count || frame.type != put->type || frame.source != put->source ||
                frame.destination != put->destination || frame.bytes != put->bytes ||
                memcmp(frame.data, put->data, put->bytes) != 0)
                abort();
        }
        wire->broken = got < 0 || more < 0;
    }
}

static void inject(struct wire *wire, const uint8_t *bytes, size_t count)
{
    size_t done = 0;
    while (done < count && !wire->broken) {
        ssize_t sent = send(wire->to_receiver, bytes + done, count - done, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (sent < 0)
            break;
        done += (size_t) sent;
        receive(wire);
    }
}

/* Passes on what the sender has put, with one byte changed if mask is not 0. */
static void pass_on(struct wire *wire, size_t place, uint8_t mask)
{
    static uint8_t stream[STREAM_MOST];
    if (rondo_frame_connection_flush(&wire->sender) < 0)
        abort();
    ssize_t got = recv(wire->from_sender, stream, sizeof(stream), MSG_DONTWAIT);
    if (got <= 0)
        return;
    if (place < (size_t) got)
        stream[place] ^= mask;
    inject(wire, stream, (size_t) got);
}

/* A frame with a right tag whose header and length are the input's. */
static void forge(struct wire *wire, const uint8_t *data, size_t bytes)
{
    static uint8_t frame[RONDO_FRAME_HEADER + DATA_MOST + RONDO_FRAME_TAG];
    uint8_t tag[RONDO_SHA256_BYTES];
    if (bytes < RONDO_FRAME_HEADER)
        return;
    size_t held = bytes - RONDO_FRAME_HEADER < DATA_MOST ? bytes - RONDO_FRAME_HEADER : DATA_MOST;
    held &= ~(size_t) 7;
    memcpy(frame, data, RONDO_FRAME_HEADER + held);
    if (data[4] % 2 == 0) { /* a number and a length that fit, so that more than the first test is reached */
        rondo_frame_store32(frame, (uint32_t) held);
        rondo_frame_store32(frame + 16, (uint32_t) wire->receiver.received);
        rondo_frame_store32(frame + 20, 0);
    }
    struct rondo_hmac hmac = wire->key.hmac;
    rondo_hmac_add(&hmac, frame, RONDO_FRAME_HEADER + held);
    rondo_hmac_end(&hmac, tag);
    memcpy(frame + RONDO_FRAME_HEADER + held, tag, RONDO_FRAME_TAG);
    wire->has_key = 1;
    inject(wire, frame, RONDO_FRAME_HEADER + held + RONDO_FRAME_TAG);
}

static void put(struct wire *wire, const uint8_t *data, size_t bytes)
{
    if (wire->count == FRAMES_MOST || bytes < 3)
        return;
    struct put *put = &wire->puts[wire->count++];
    *put = (struct put){data[0], data[1] - 1, data[2] - 1, bytes - 3 < DATA_MOST ? bytes - 3 : DATA_MOST, {0}};
    memcpy(put->data, data + 3, put->bytes);
    if (rondo_frame_connection_put(&wire->sender, put->type, put->source, put->destination, put->data, put->bytes) != 0)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static struct wire wire;
    int near[2], far[2];
    struct rondo_frame_key other = {0};
    memset(&wire, 0, sizeof(wire));
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, near) != 0 || socketpair(AF_UNIX, SOCK_STREAM, 0, far) != 0)
        abort();
    rondo_hmac_begin(&wire.key.hmac, "to receiver", 11);
    rondo_hmac_begin(&other.hmac, "to sender", 9);
    rondo_frame_connection_open(&wire.sender, near[0], &wire.key, &other);
    rondo_frame_connection_open(&wire.receiver, far[0], &other, &wire.key);
    wire.from_sender = near[1];
    wire.to_receiver = far[1];
    /* A step: what, how many bytes it has (2), these bytes. */
    for (size_t at = 0; at + 3 <= bytes;) {
        size_t length = (size_t) data[at + 1] << 8 | data[at + 2], left = bytes - at - 3;
        const uint8_t *step = data + at + 3;
        length = length < left ? length : left;
        switch (data[at] % 5) {
        case 0:
        case 1:
            put(&wire, step, length);
            break;
        case 2:
            pass_on(&wire, length > 1 ? (size_t) step[0] << 8 | step[1] : 0, length > 2 ? step[2] : 0);
            break;
        case 3:
            inject(&wire, step, length);
            break;
        default:
            forge(&wire, step, length);
            break;
        }
        at += 3 + length;
    }
    pass_on(&wire, 0, 0);
    rondo_frame_connection_close(&wire.sender);
    rondo_frame_connection_close(&wire.receiver);
    close(near[1]);
    close(far[1]);
    return 0;
}

/*
 * Listening sockets, and the peers at them that have not proven yet that they know the secret: the server's half of the
 * handshake (lib/bootstrap/handshake.h), for the root and for every rank. Relies on an epoll set of the caller's.
 *
 * Unauthenticated peers cost little: their connections are bounded in number, bytes and time, and no call waits for one.
 * An admission belongs to one thread.
 */
#ifndef RONDO_LIB_BOOTSTRAP_ADMISSION_H
#define RONDO_LIB_BOOTSTRAP_ADMISSION_H

#include "lib/bootstrap/frame_connection.h"
#include "lib/bootstrap/handshake.h"

enum { RONDO_ADMISSION_LISTENERS = 9 };

/* What an event of the epoll set is about: data.ptr leads to a structure that begins with this. */
enum rondo_watched { RONDO_WATCHED_LISTENER, RONDO_WATCHED_GUEST, RONDO_WATCHED_CONNECTION, RONDO_WATCHED_OTHER };

struct rondo_listener {
    enum rondo_watched watched;
    int fd;
};

/* A peer whose hello has not come as a whole. */
struct rondo_guest {
    enum rondo_watched watched;
    struct rondo_guest *next, *previous; /* newest first */
    int fd;
    int is_network; /* not a Unix socket */
    const struct rondo_hmac *secret;
    struct rondo_handshake handshake;
    size_t hello_bytes;
    int64_t deadline; /* by rondo_clock_ms; INT64_MAX: it came by rondo_admission_invite, and stays */
};

struct rondo_admission {
    int epoll;
    struct rondo_hmac secret;     /* of Unix sockets, on which the same user alone is heard, and of invited guests */
    struct rondo_hmac tcp_secret; /* of TCP: the same, or one that no rank knows, where TCP is there to refuse alone */
    int encrypts;                 /* RONDO_ENCRYPT */
    struct rondo_listener listeners[RONDO_ADMISSION_LISTENERS];
    int listener_count;
    struct rondo_guest *first;
    int guests;
    int64_t accept_again; /* 0: accepting; else when to, because descriptors or memory were out */
};

/* Adds a listening socket, which is the admission's from then on. At most RONDO_ADMISSION_LISTENERS. */
void rondo_admission_listen(struct rondo_admission *admission, int fd);
/* Watches the listeners by the epoll set. RONDO_ERR_SYSTEM. */
rondo_result_t rondo_admission_open(struct rondo_admission *admission, int epoll);
/* Closes the listeners, so that a peer that connects is refused, and all guests. Clears the secrets. */
void rondo_admission_close(struct rondo_admission *admission);

/* Makes a guest of a connected socket, which is closed on failure; no other guest displaces it. NULL with errno on failure. */
struct rondo_guest *rondo_admission_invite(struct rondo_admission *admission, int fd);

/*
 * Serves an event of a listener or a guest, `watched`. Returns the guest if its hello has come and its secret is right: the
 * claim is then set, and rondo_admission_answer is due. NULL otherwise; the guest may have been freed, and so may others: an
 * event that was fetched together with this one is of no use, so the caller fetches one at a time.
 */
struct rondo_guest *rondo_admission_serve(struct rondo_admission *admission, enum rondo_watched *watched,
                                          struct rondo_handshake_claim *claim);
/* Sends the verdict and frees the guest. Returns whether the peer is welcome and has been told so: the connection is then open,
 * and not in the epoll set. detail: lib/bootstrap/handshake.h. */
int rondo_admission_answer(struct rondo_admission *admission, struct rondo_guest *guest, enum rondo_handshake_verdict verdict,
                           int detail, struct rondo_frame_connection *connection);

/* Ends guests whose time is up, and accepts again when that is due. Returns when to call it again; INT64_MAX: never. */
int64_t rondo_admission_expire(struct rondo_admission *admission, int64_t now);

#endif

/*
 * The steps in which a job forms at a root (lib/bootstrap/root.c), and what its members say: ranks, and, where there are
 * several roots, the others. All of it runs on the root's thread.
 */
#ifndef RONDO_LIB_BOOTSTRAP_ROOT_STEPS_H
#define RONDO_LIB_BOOTSTRAP_ROOT_STEPS_H

#include "lib/bootstrap/address.h"
#include "lib/bootstrap/job.h"
#include "lib/bootstrap/root.h"

enum step { ADMITTED, JOINING, LISTENING, LINKING, FORMED, FAILED };

struct member {
    enum rondo_watched watched;
    struct rondo_frame_connection connection;
    int rank, local;              /* local: of this process. rank of a root: the first of its share */
    int is_root;                  /* another root */
    int places;                   /* of a root: of how many ranks of its share it has told the places */
    int is_network;               /* it came by TCP */
    enum step answered;           /* the last step that it has answered */
    int writing, broken;          /* writing: the socket is watched for room */
    struct rondo_address address; /* as other ranks reach it; 0 bytes: by its Unix socket */
};

struct root {
    struct rondo_root_options options;
    struct rondo_admission *admission;
    int epoll;
    int size, joined;
    int roots, share; /* of the job; this root's */
    int first, count; /* the ranks of the share */
    enum step step;
    int answers;             /* ranks that have answered the present step */
    int broken;              /* a member is */
    int64_t deadline;        /* of the step */
    double waited;           /* seconds that the deadline stands for */
    int most;                /* members that there may be: the ranks of the share, and at the first root the other roots */
    struct member **members; /* in that order; NULL: not joined, or gone */
    unsigned char *places;   /* of all ranks; NULL: not known yet */
    int places_known;        /* at a root after the first: so many have come from the first */
    int is_network;          /* ranks listen on TCP */
    int is_reported;         /* at a root after the first: the first one has been told that the present step was answered */
    struct member *upstream; /* the first root; NULL: this is the first, or it is not connected to it */
    struct rondo_first_root *reaching; /* the connection to it that is being made, or will be */
    int reached;                       /* eventfd: reaching is done; -1: none */
    enum rondo_watched reached_watched;
    int is_late; /* the deadline has been put off for another root */
    struct rondo_guest *own_guest;
    struct member *anchor; /* of the rank that started the root; without it the job cannot form */
    unsigned char process[RONDO_PROCESS_TOKEN_BYTES];
};

static inline int is_first(const struct root *root)
{
    return root->share == 0;
}

/* The place of a rank of this share, or of another root, among the members. */
static inline int place_of(const struct root *root, int rank, int is_root)
{
    return is_root ? root->count + rondo_job_share(rank, root->size, root->roots) - 1 : rank - root->first;
}

/* Sends what is queued for the member. What the socket does not take is watched for. */
void rondo_root_flush(struct root *root, struct member *member);
/* The job does not form: tells all members why, and the first root, if this is another. */
void rondo_root_fail(struct root *root, const char *reason);
/* Closes the connection and forgets the member. */
void rondo_root_free_member(struct root *root, struct member *member);
/* Frees the members whose connections are broken, and at the end those that have been told all. */
void rondo_root_settle(struct root *root);
/* The member has answered the present step; if all have, the next one begins. */
void rondo_root_answer(struct root *root, struct member *member);
/* Begins to connect to the first root, which has been prepared, by the deadline. */
void rondo_root_reach_first(struct root *root);
/* Takes the connection to the first root from the thread that has made it, or its failure. */
void rondo_root_take_first(struct root *root);
/* Reads what the member has sent, and does what it says. One that breaks the rules is broken then. */
void rondo_root_read(struct root *root, struct member *member);

#endif

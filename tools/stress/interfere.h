/*
 * What an application does beside its collectives, on a thread of its own: calls of the CUDA runtime that wait until running
 * kernels end, again and again. How long each took tells whether the daemon is in its way.
 */
#ifndef RONDO_TOOLS_STRESS_INTERFERE_H
#define RONDO_TOOLS_STRESS_INTERFERE_H

#include <stdint.h>

enum interfere_call {
    INTERFERE_MALLOC,
    INTERFERE_FREE,
    INTERFERE_HOST_ALLOC,
    INTERFERE_FREE_HOST,
    INTERFERE_HOST_REGISTER,
    INTERFERE_HOST_UNREGISTER,
    INTERFERE_FIRST_LAUNCH, /* of a kernel that is not loaded yet */
    INTERFERE_KERNEL_END,   /* and until that kernel has run */
    INTERFERE_CALLS
};
extern const char *const interfere_names[INTERFERE_CALLS]; /* in tools/stress/stress.c */

struct interfere_record {
    double limit; /* seconds; 0: no call is late */
    uint64_t counts[INTERFERE_CALLS];
    uint64_t late[INTERFERE_CALLS];  /* of these, those that took longer than the limit */
    double longest[INTERFERE_CALLS]; /* seconds */
    char failure[128];               /* empty: every call succeeded */
};

struct interfere; /* a running thread */

/* NULL: no thread or memory. limit: as the record has it. */
struct interfere *interfere_start(int gpu, double limit);
/* Ends it, when the call in progress has returned. */
void interfere_stop(struct interfere *interfere, struct interfere_record *record);

/* In tools/stress/interfere.cu: enqueues an empty kernel, one of INTERFERE_KERNELS that are loaded one by one. Returns a
 * cudaError_t. */
enum { INTERFERE_KERNELS = 64 };
#ifdef __cplusplus
extern "C"
#endif
    int
    interfere_launch(int number, void *stream);

#endif

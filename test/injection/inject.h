/*
 * Failure injection: the n-th call that the library makes of one function fails, in a chosen way. wrappers.c stands between the
 * library and libc (the linker's --wrap), cuda_wrappers.c between it and CUDA, ucx_wrappers.c between UCX and libc, and they
 * ask inject_now at each call. Calls count from inject_arm to inject_disarm. Also remembers what the library has allocated and
 * not freed. Relies on libc alone.
 *
 * The order is read from the environment: RONDO_X_FAIL_CALL is a function of functions.h, ucx_functions.h or cuda_functions.h,
 * RONDO_X_FAIL_NUMBER the call that fails (1: the first), RONDO_X_FAIL_WITH the way (an index of the function's list, default
 * 0), RONDO_X_FAIL_LASTING=1 makes all later calls of it fail too. Without RONDO_X_FAIL_CALL calls are only counted.
 *
 * Where ranks are threads of one process, a thread says whose calls it makes (inject_be), the threads that it starts make calls
 * of the same rank, and RONDO_X_FAIL_RANK says of which rank a call fails (default 0).
 */
#ifndef RONDO_TEST_INJECTION_INJECT_H
#define RONDO_TEST_INJECTION_INJECT_H

#include "test/injection/cuda_functions.h"
#include "test/injection/functions.h"
#include "test/injection/ucx_functions.h"

#include <stddef.h>
#include <stdint.h>

enum { INJECT_SHORT = -1, INJECT_END = -2 };
enum { INJECT_WAYS = 5, INJECT_SITES = 2048, INJECT_DEPTH = 16, INJECT_RANKS = 3 };

#define INJECT_NAME(name, ...) INJECT_##name,
enum inject_function {
    INJECT_FUNCTIONS(INJECT_NAME) INJECT_UCX_FUNCTIONS(INJECT_NAME) INJECT_OF_LIBC,
    INJECT_BEFORE_CUDA = INJECT_OF_LIBC - 1, /* the next is INJECT_OF_LIBC */
    INJECT_CUDA_FUNCTIONS(INJECT_NAME) INJECT_FUNCTION_COUNT
};
#undef INJECT_NAME

/* What a rank has done, in memory that outlives it. */
struct inject_record {
    long calls[INJECT_FUNCTION_COUNT];                      /* counted calls */
    uintptr_t sites[INJECT_FUNCTION_COUNT][INJECT_SITES];   /* where each was made from: a return address */
    int wants_contexts;                                     /* set before the run */
    uint64_t contexts[INJECT_FUNCTION_COUNT][INJECT_SITES]; /* if it is: a hash of where and of the callers */
    int fired;                                              /* the n-th call was made, and failed */
    uintptr_t fired_site;                                   /* where it was made from */
    int fired_depth;
    void *fired_stack[INJECT_DEPTH]; /* the same with its callers */
};

const char *inject_function_name(int function);
int inject_is_cuda(int function);
/* The way's errno, INJECT_SHORT or INJECT_END, or CUDA's error; 0 if the function has no such way. */
int inject_way(int function, int way);
const char *inject_way_name(int function, int way);

/* The calls of this thread, and of those that it starts from now on, are the rank's. Those of other threads are rank 0's. */
void inject_be(int rank);
int inject_self(void);
/* Counts the calls of the thread's rank from now on, and fails the one that the environment names. */
void inject_arm(struct inject_record *record);
void inject_disarm(void);
/* From pause to resume the thread's calls are not the library's: they do not count, and what they allocate is not noted. */
void inject_pause(void);
void inject_resume(void);
/* What is allocated now is not the library's: what CUDA's runtime has before main, for one. */
void inject_forget(void);
/* Allocations of the library that are still there: their number, and the first few as "address bytes,..." in text. */
long inject_live(char *text, size_t bytes);

/* Called by the wrappers. Returns the way in which this call must fail, or 0. */
int inject_now(enum inject_function function, const void *site);
void inject_allocated(void *memory, size_t bytes, const void *site);
void inject_freed(void *memory);

#endif

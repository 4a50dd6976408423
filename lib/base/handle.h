/*
 * Handles: what rondo_t, rondo_comm_t, rondo_request_t and rondo_program_t hold. A handle is a number in the form of a pointer:
 * a place in one table of the process, the kind of the object, and the generation of the place. It is not the address of
 * anything, and is never dereferenced: the table says which object it stands for, if any. So a freed handle, a handle of
 * another kind and any other pointer are errors of the call. In a process that was forked while a runtime existed no handle
 * stands for anything, as the runtime's threads and connections are the parent's. Relies on libc alone; lib/context/handles.h
 * and lib/program/builder.h have the typed form.
 */
#ifndef RONDO_LIB_BASE_HANDLE_H
#define RONDO_LIB_BASE_HANDLE_H

#include "rondo.h"

#include <stdint.h>

enum rondo_handle_kind { /* 0 is no kind: NULL */
                         RONDO_HANDLE_RUNTIME = 1,
                         RONDO_HANDLE_COMM = 2,
                         RONDO_HANDLE_REQUEST = 3,
                         RONDO_HANDLE_PROGRAM = 4,
                         RONDO_HANDLE_KINDS
};

/* Bits of a handle, from the lowest: kind, place in a block, block, generation; the highest is 1, so that no address of user
 * space is a handle. */
#define RONDO_HANDLE_KIND_BITS  3
#define RONDO_HANDLE_PLACE_BITS 12
#define RONDO_HANDLE_BLOCK_BITS 10
#define RONDO_HANDLE_PLACES     (1u << RONDO_HANDLE_PLACE_BITS)
#define RONDO_HANDLE_BLOCKS     (1u << RONDO_HANDLE_BLOCK_BITS)

struct rondo_handle_place {
    uintptr_t handle; /* that stands for the object now; 0: none */
    void *object;
};

/* The blocks of the table. Where none has been allocated, a block whose places are all empty. */
extern struct rondo_handle_place *rondo_handle_blocks[RONDO_HANDLE_BLOCKS] __attribute__((visibility("hidden")));

/* Returns the object that the handle stands for; NULL if it stands for none of that kind, whatever pointer it is. Any thread,
 * without locks. A handle must not be closed meanwhile. */
static inline void *rondo_handle_find(const void *handle, enum rondo_handle_kind kind)
{
    const uintptr_t value = (uintptr_t) handle;
    const uintptr_t index = value >> RONDO_HANDLE_KIND_BITS;
    /* Acquire pairs with the release in rondo_handle_open: the block is initialized, and the object belongs to the handle. */
    const struct rondo_handle_place *block =
        __atomic_load_n(&rondo_handle_blocks[index >> RONDO_HANDLE_PLACE_BITS & (RONDO_HANDLE_BLOCKS - 1)], __ATOMIC_ACQUIRE);
    const struct rondo_handle_place *place = &block[index & (RONDO_HANDLE_PLACES - 1)];
    /* An empty place has 0, which is of no kind. */
    if (__builtin_expect(__atomic_load_n(&place->handle, __ATOMIC_ACQUIRE) != value, 0) ||
        __builtin_expect((value & ((1u << RONDO_HANDLE_KIND_BITS) - 1)) != (uintptr_t) kind, 0))
        return NULL;
    return __atomic_load_n(&place->object, __ATOMIC_RELAXED);
}

/* Makes a handle that stands for the object. Any thread; takes the table's lock. NULL: out of memory, or of places, or forks
 * cannot be watched. */
void *rondo_handle_open(enum rondo_handle_kind kind, void *object);
/* Ends the handle. It is open, or NULL, which does nothing. Any thread; takes the table's lock. */
void rondo_handle_close(void *handle);
/* Ends the handle and returns another one for the same object, in the same place. It is open, and the calling thread alone ends
 * it. Without locks. */
void *rondo_handle_renew(void *handle);

/* Sets the message of a call whose handle rondo_handle_find has not found, and returns its code: RONDO_ERR_STATE in a forked
 * process and for a freed request, else RONDO_ERR_ARGUMENT. function: the name of the public call. */
rondo_result_t rondo_handle_refuse(const void *handle, enum rondo_handle_kind kind, const char *function);

/* Notes that a runtime begins to exist, before any of its parts; rondo_handle_runtime_ended undoes it. RONDO_ERR_STATE in a
 * process that was forked while one existed. function: the public call, for the message. Any thread. */
rondo_result_t rondo_handle_runtime_begins(const char *function);
void rondo_handle_runtime_ended(void);
/* RONDO_ERR_STATE in a process that was forked while a runtime existed; for calls without a handle. */
rondo_result_t rondo_handle_check_process(const char *function);

#endif

/* The table of operators of the user (lib/call/user_operators.h) and the public calls that make and free them. A place's fields
 * are read without locks: a reader takes the number before and after them, and a writer clears the number first. */
#include "lib/call/user_operators.h"

#include "lib/base/error.h"
#include "lib/base/handle.h"

#include <pthread.h>
#include <stdlib.h>

#define PLACES       (1u << RONDO_OP_PLACE_BITS)
#define BLOCK_PLACES 256u /* that are allocated together, and never freed */
#define GENERATIONS  (1u << RONDO_OP_GENERATION_BITS)
#define PLACE(op)    ((unsigned) (op) & (PLACES - 1))
#define NO_PLACE     UINT32_MAX

struct place {
    unsigned number; /* of the operator that is here; 0: none. Atomic, as the next two are */
    rondo_op_function_t *function;
    void *argument;
    unsigned generation; /* of the place's last operator */
    unsigned next_free;
};

static struct place *blocks[PLACES / BLOCK_PLACES]; /* atomic */

/* The lock protects the rest. Freed places are taken in the order in which they were freed, so that a place's generations last
 * long. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned used; /* places that have ever had an operator */
static unsigned first_free = NO_PLACE, last_free = NO_PLACE;

static struct place *place_at(unsigned index)
{
    /* Acquire pairs with the release in take_place: the block is initialized. */
    struct place *block = __atomic_load_n(&blocks[index / BLOCK_PLACES], __ATOMIC_ACQUIRE);
    return block != NULL ? &block[index % BLOCK_PLACES] : NULL;
}

/* A place without an operator; NO_PLACE: there is none, or no memory for one. Under the lock. */
static unsigned take_place(void)
{
    /* As long as there are unused places in the allocated blocks or many to allocate, a freed one rests. */
    if (used < PLACES && (used % BLOCK_PLACES != 0 || first_free == NO_PLACE)) {
        if (used % BLOCK_PLACES == 0) {
            struct place *block = calloc(BLOCK_PLACES, sizeof(*block));
            if (block == NULL)
                return NO_PLACE;
            __atomic_store_n(&blocks[used / BLOCK_PLACES], block, __ATOMIC_RELEASE);
        }
        return used++;
    }
    const unsigned index = first_free;
    if (index != NO_PLACE) {
        first_free = place_at(index)->next_free;
        if (first_free == NO_PLACE)
            last_free = NO_PLACE;
    }
    return index;
}

int rondo_op_find(rondo_op_t op, rondo_op_function_t **function, void **argument)
{
    const unsigned number = (unsigned) op;
    const struct place *place = rondo_op_is_user(op) ? place_at(PLACE(op)) : NULL;
    if (place == NULL || __atomic_load_n(&place->number, __ATOMIC_ACQUIRE) != number)
        return 0;
    *function = __atomic_load_n(&place->function, __ATOMIC_ACQUIRE);
    *argument = __atomic_load_n(&place->argument, __ATOMIC_ACQUIRE);
    /* The fields are acquired, and released by a writer that has cleared the number: a number that is still there has been
     * there all the while. */
    return __atomic_load_n(&place->number, __ATOMIC_RELAXED) == number;
}

static rondo_result_t create(const char *call, rondo_op_function_t *function, void *argument, int commutative, rondo_op_t *op)
{
    if (op != NULL)
        *op = RONDO_OP_NONE;
    rondo_result_t result = rondo_handle_check_process(call);
    if (result != RONDO_SUCCESS)
        return result;
    if (function == NULL || op == NULL)
        return rondo_fail(RONDO_ERR_ARGUMENT, "%s: %s is NULL", call, op == NULL ? "op" : "function");
    if (commutative != 0 && commutative != 1)
        return rondo_fail(RONDO_ERR_ARGUMENT, "%s: commutative is %d, which is neither 0 nor 1", call, commutative);
    pthread_mutex_lock(&lock);
    const unsigned index = take_place(), exist = used;
    if (index == NO_PLACE) {
        pthread_mutex_unlock(&lock);
        return rondo_fail(RONDO_ERR_MEMORY, "%s: no memory for another operator, or %u of them exist", call, exist);
    }
    struct place *place = place_at(index);
    place->generation = (place->generation + 1) % (GENERATIONS - 1); /* the last is RONDO_OP_NONE's */
    const unsigned number =
        RONDO_OP_USER | (commutative ? 0 : RONDO_OP_ORDERED) | place->generation << RONDO_OP_PLACE_BITS | index;
    __atomic_store_n(&place->function, function, __ATOMIC_RELEASE);
    __atomic_store_n(&place->argument, argument, __ATOMIC_RELEASE);
    __atomic_store_n(&place->number, number, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&lock);
    *op = (rondo_op_t) number;
    return RONDO_SUCCESS;
}

rondo_result_t rondo_op_create(rondo_op_function_t *function, int commutative, rondo_op_t *op)
{
    return create("rondo_op_create", function, NULL, commutative, op);
}

rondo_result_t rondo_op_create_with(rondo_op_function_t *function, void *argument, int commutative, rondo_op_t *op)
{
    return create("rondo_op_create_with", function, argument, commutative, op);
}

rondo_result_t rondo_op_free(rondo_op_t *op)
{
    rondo_result_t result = rondo_handle_check_process("rondo_op_free");
    if (result != RONDO_SUCCESS)
        return result;
    if (op == NULL)
        return rondo_fail(RONDO_ERR_ARGUMENT, "rondo_op_free: op is NULL");
    const unsigned number = (unsigned) *op, index = PLACE(number);
    struct place *place = rondo_op_is_user(*op) ? place_at(index) : NULL;
    pthread_mutex_lock(&lock);
    if (place == NULL || place->number != number) {
        pthread_mutex_unlock(&lock);
        return rondo_fail(RONDO_ERR_ARGUMENT, "rondo_op_free: operator %#x %s", number,
                          number < RONDO_OP_COUNT ? "is built in" : "does not exist, or has been freed");
    }
    __atomic_store_n(&place->number, 0, __ATOMIC_RELEASE);
    place->next_free = NO_PLACE;
    if (last_free != NO_PLACE)
        place_at(last_free)->next_free = index;
    else
        first_free = index;
    last_free = index;
    pthread_mutex_unlock(&lock);
    *op = RONDO_OP_NONE;
    return RONDO_SUCCESS;
}

rondo_result_t rondo_op_commutative(rondo_op_t op, int *commutative)
{
    rondo_op_function_t *function;
    void *argument;
    rondo_result_t result = rondo_handle_check_process("rondo_op_commutative");
    if (result != RONDO_SUCCESS)
        return result;
    if (commutative == NULL)
        return rondo_fail(RONDO_ERR_ARGUMENT, "rondo_op_commutative: commutative is NULL");
    if ((unsigned) op >= RONDO_OP_COUNT && !rondo_op_find(op, &function, &argument))
        return rondo_fail(RONDO_ERR_ARGUMENT, "rondo_op_commutative: operator %#x does not exist, or has been freed",
                          (unsigned) op);
    *commutative = !rondo_op_is_ordered(op);
    return RONDO_SUCCESS;
}

/* Random delays: preloaded into a program whose functions were compiled with -finstrument-functions, it lets a thread sleep now
 * and then where a function begins or ends. So threads meet in orders that a scheduler brings about once in a million
 * (`make delays`). DELAYS_EVERY: of so many beginnings and ends one sleeps; DELAYS_NS: for less than so many nanoseconds. */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

#define UNTOUCHED __attribute__((no_instrument_function))

void __cyg_profile_func_enter(void *function, void *caller);
void __cyg_profile_func_exit(void *function, void *caller);

static uint64_t every = 20000, most_ns = 200000;
static _Thread_local uint64_t state; /* of the thread's generator (xorshift64); 0: not seeded */

UNTOUCHED static void read_number(const char *name, uint64_t *number)
{
    const char *text = getenv(name);
    char *end;
    if (text == NULL)
        return;
    *number = strtoull(text, &end, 10);
    if (*number == 0 || *end != '\0')
        abort();
}

UNTOUCHED __attribute__((constructor)) static void begin(void)
{
    read_number("DELAYS_EVERY", &every);
    read_number("DELAYS_NS", &most_ns);
}

UNTOUCHED static uint64_t next_random(void)
{
    if (state == 0) {
        struct timespec now;
        clock_gettime(CLOCK_MONOTONIC, &now);
        state = ((uint64_t) now.tv_nsec << 32 ^ (uint64_t) (uintptr_t) &state) | 1;
    }
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

UNTOUCHED static void maybe_sleep(void)
{
    const uint64_t random = next_random();
    if (random % every != 0)
        return;
    const int error = errno; /* which the function around it may be about to read */
    const struct timespec pause = {0, (long) ((random >> 20) % most_ns % 1000000000)};
    nanosleep(&pause, NULL);
    errno = error;
}

UNTOUCHED void __cyg_profile_func_enter(void *function, void *caller)
{
    (void) function;
    (void) caller;
    maybe_sleep();
}

UNTOUCHED void __cyg_profile_func_exit(void *function, void *caller)
{
    (void) function;
    (void) caller;
    maybe_sleep();
}

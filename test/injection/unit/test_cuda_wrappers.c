/*
 * The wrappers that make calls of CUDA fail (test/injection/cuda_wrappers.c), before a CUDA of this test's own, which needs no
 * GPU: each call of it succeeds, changes nothing, and is counted.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "test/injection/inject.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if RONDO_WITH_CUDA
static int done; /* calls that have come to the other side */

int test_cuda_succeeds(void);
int test_cuda_succeeds(void)
{
    done++;
    return 0;
}

/* Stands for every function of the runtime that the wrappers call. */
#define STAND_IN(name, ...) __asm__(".globl __real_" #name "\n.set __real_" #name ", test_cuda_succeeds\n");
INJECT_CUDA_RUNTIME(STAND_IN)
INJECT_CUDA_ERRORS(STAND_IN)

__typeof__(cudaMalloc) __wrap_cudaMalloc;
__typeof__(cudaFree) __wrap_cudaFree;
__typeof__(cudaSetDevice) __wrap_cudaSetDevice;
__typeof__(cudaGetLastError) __wrap_cudaGetLastError;
__typeof__(cudaPeekAtLastError) __wrap_cudaPeekAtLastError;

static struct inject_record records[INJECT_RANKS];

/* The number'th call of the rank fails. */
static void order(const char *call, int number, int rank)
{
    char text[24];
    setenv("RONDO_X_FAIL_CALL", call, 1);
    snprintf(text, sizeof(text), "%d", number);
    setenv("RONDO_X_FAIL_NUMBER", text, 1);
    snprintf(text, sizeof(text), "%d", rank);
    setenv("RONDO_X_FAIL_RANK", text, 1);
    for (int i = INJECT_RANKS - 1; i >= 0; i--) {
        records[i] = (struct inject_record){0};
        inject_be(i);
        inject_arm(&records[i]);
    }
    done = 0;
}

static void test_the_nth_call_fails(void **state)
{
    (void) state;
    for (int wanted = 1; wanted <= 3; wanted++) {
        order("cudaSetDevice", wanted, 0);
        for (int number = 1; number <= 4; number++) {
            void *memory = (void *) &done;
            assert_int_equal(__wrap_cudaSetDevice(0), number == wanted ? cudaErrorMemoryAllocation : cudaSuccess);
            assert_int_equal(__wrap_cudaMalloc(&memory, 1), cudaSuccess);
        }
        assert_int_equal(done, 4 + 4 - 1);
        assert_int_equal(records[0].calls[INJECT_cudaSetDevice], 4);
        assert_true(records[0].fired);
        (void) __wrap_cudaGetLastError();
    }
}

/* Only the rank's calls count, and none of a thread that has paused. */
static void test_whose_calls_count(void **state)
{
    (void) state;
    order("cudaSetDevice", 1, 2);
    assert_int_equal(__wrap_cudaSetDevice(0), cudaSuccess);
    inject_be(2);
    inject_pause();
    assert_int_equal(__wrap_cudaSetDevice(0), cudaSuccess);
    inject_resume();
    assert_int_equal(__wrap_cudaSetDevice(0), cudaErrorMemoryAllocation);
    assert_int_equal(records[0].calls[INJECT_cudaSetDevice], 1);
    assert_int_equal(records[2].calls[INJECT_cudaSetDevice], 1);
    assert_false(records[0].fired);
    inject_be(0);
    (void) __wrap_cudaGetLastError();
}

/* The error is the runtime's last one, until it is asked for. */
static void test_last_error(void **state)
{
    (void) state;
    order("cudaSetDevice", 1, 0);
    assert_int_equal(__wrap_cudaSetDevice(0), cudaErrorMemoryAllocation);
    assert_int_equal(__wrap_cudaPeekAtLastError(), cudaErrorMemoryAllocation);
    assert_int_equal(__wrap_cudaGetLastError(), cudaErrorMemoryAllocation);
    assert_int_equal(__wrap_cudaGetLastError(), cudaSuccess);
}

/* What is released is released all the same, and what was not given is not the library's. */
static void test_what_is_left(void **state)
{
    char text[200];
    void *memory = (void *) &records[0];
    (void) state;
    order("cudaFree", 1, 0);
    long before = inject_live(text, sizeof(text));
    assert_int_equal(__wrap_cudaMalloc(&memory, 100), cudaSuccess);
    assert_int_equal(inject_live(text, sizeof(text)), before + 1);
    done = 0;
    assert_int_equal(__wrap_cudaFree(memory), cudaErrorInvalidValue);
    assert_int_equal(done, 1);
    assert_int_equal(inject_live(text, sizeof(text)), before);
    order("cudaMalloc", 1, 0);
    assert_int_equal(__wrap_cudaMalloc(&memory, 100), cudaErrorMemoryAllocation);
    assert_int_equal(inject_live(text, sizeof(text)), before);
    (void) __wrap_cudaGetLastError();
}

/* Every error has a name, and every function fails in some way. */
static void test_ways(void **state)
{
    (void) state;
    for (int function = INJECT_OF_LIBC; function < INJECT_FUNCTION_COUNT; function++) {
        assert_true(inject_is_cuda(function));
        assert_int_not_equal(inject_way(function, 0), 0);
        for (int way = 0; inject_way(function, way) != 0; way++) {
            const char *name = inject_way_name(function, inject_way(function, way));
            if (strncmp(name, "CUDA_ERROR_", 11) != 0)
                assert_string_equal(name, cudaGetErrorName((cudaError_t) inject_way(function, way)));
        }
    }
    assert_false(inject_is_cuda(INJECT_malloc));
}

#if CUDART_VERSION >= 12050
__typeof__(cudaGetDriverEntryPointByVersion) __wrap_cudaGetDriverEntryPointByVersion;

static void *look_up(const char *name)
{
    enum cudaDriverEntryPointQueryResult found;
    void *function = (void *) test_cuda_succeeds;
    assert_int_equal(__wrap_cudaGetDriverEntryPointByVersion(name, &function, CUDART_VERSION, cudaEnableDefault, &found),
                     cudaSuccess);
    return function;
}

/* The driver's functions are given out with a wrapper, of which each fails its own calls; unknown ones as they are. */
static void test_driver(void **state)
{
    static const char *const names[] = {
#define NAME(name, ...) #name,
        INJECT_CUDA_DRIVER(NAME)
#undef NAME
    };
    const int count = sizeof(names) / sizeof(names[0]);
    (void) state;
    order("none", 0, 0);
    assert_ptr_equal(look_up("cuGetErrorString"), test_cuda_succeeds);
    for (int i = 0; i < count; i++) {
        const int function = INJECT_FUNCTION_COUNT - count + i;
        CUdeviceptr values[16] = {0}; /* longer than any structure that is passed */
        assert_string_equal(inject_function_name(function), names[i]);
        order("none", 0, 0);
        /* Of many types, but pointers and integers go to the same places. */
        CUresult (*call)(void *, void *, void *, void *, void *) =
            (CUresult(*)(void *, void *, void *, void *, void *)) look_up(names[i]);
        assert_ptr_not_equal(call, test_cuda_succeeds);
        for (int number = 0; number < 2; number++)
            assert_int_equal(call(&values[0], &values[1], &values[2], &values[3], NULL), CUDA_SUCCESS);
        order(names[i], 2, 0);
        assert_int_equal(call(&values[0], &values[1], &values[2], &values[3], NULL), CUDA_SUCCESS);
        assert_int_equal(call(&values[0], &values[1], &values[2], &values[3], NULL), inject_way(function, 0));
        assert_int_equal(call(&values[0], &values[1], &values[2], &values[3], NULL), CUDA_SUCCESS);
        assert_int_equal(records[0].calls[function], 3);
        assert_int_equal(records[0].fired, 1);
    }
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_nth_call_fails),
        cmocka_unit_test(test_whose_calls_count),
        cmocka_unit_test(test_last_error),
        cmocka_unit_test(test_what_is_left),
        cmocka_unit_test(test_ways),
#if CUDART_VERSION >= 12050
        cmocka_unit_test(test_driver),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
#else
int main(void)
{
    printf("test_cuda_wrappers: skipped: built without CUDA\n");
    return 0;
}
#endif

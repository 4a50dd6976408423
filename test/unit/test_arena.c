/* The arena: regions from slabs of several sources, under one budget, zeroed whatever they held before. */
#include "transport/memory/arena.h"

#include "lib/base/error.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* A source of memory that records its calls. */
struct notes {
    int allocated, released, zeroed;
    int failing; /* how many of the next calls fail */
};

static rondo_result_t note_allocate(void *argument, size_t bytes, struct rondo_slab *slab)
{
    struct notes *notes = argument;
    if (notes->failing)
        return rondo_fail(RONDO_ERR_DEVICE, "no slab of %zu bytes", bytes);
    *slab = (struct rondo_slab){calloc(1, bytes), bytes, notes};
    notes->allocated++;
    return RONDO_SUCCESS;
}

static void note_release(void *argument, struct rondo_slab *slab)
{
    struct notes *notes = argument;
    assert_ptr_equal(slab->own, notes);
    notes->released++;
    free(slab->base);
}

static rondo_result_t note_zero(void *argument, void *memory, size_t bytes)
{
    struct notes *notes = argument;
    if (notes->failing)
        return rondo_fail(RONDO_ERR_DEVICE, "no zeros");
    notes->zeroed++;
    memset(memory, 0, bytes);
    return RONDO_SUCCESS;
}

static const struct rondo_slab_source small = {4096, note_allocate, note_release, note_zero};
static const struct rondo_slab_source large = {65536, note_allocate, note_release, note_zero};

static char *take(struct rondo_arena *arena, const struct rondo_slab_source *source, struct notes *notes, size_t bytes,
                  struct rondo_region *region)
{
    assert_int_equal(rondo_arena_allocate(arena, source, notes, bytes, region), RONDO_SUCCESS);
    assert_true(region->bytes >= bytes && region->bytes % 256 == 0 && region->offset % 256 == 0);
    assert_true(region->offset + region->bytes <= region->slab->bytes);
    char *memory = region->slab->base + region->offset;
    for (size_t i = 0; i < bytes; i++)
        assert_int_equal(memory[i], 0);
    memset(memory, 'x', region->bytes);
    return memory;
}

static void test_regions(void **state)
{
    (void) state;
    struct rondo_arena *arena;
    struct notes notes = {0};
    struct rondo_region a, b, c, d;
    assert_int_equal(rondo_arena_create(&arena, 1 << 20), RONDO_SUCCESS);
    char *first = take(arena, &small, &notes, 1, &a), *second = take(arena, &small, &notes, 257, &b);
    assert_ptr_equal(second, first + 256);
    assert_int_equal(b.bytes, 512);
    assert_ptr_equal(take(arena, &small, &notes, 1000, &c), second + 512);
    assert_int_equal(notes.allocated, 1);
    assert_int_equal(rondo_arena_reserved(arena), 256 + 512 + 1024);
    /* Neighbours that are released in any order merge into one region. */
    rondo_arena_release(arena, &a);
    rondo_arena_release(arena, &c);
    rondo_arena_release(arena, &b);
    assert_int_equal(rondo_arena_reserved(arena), 0);
    assert_int_equal(notes.zeroed, 0);
    assert_ptr_equal(take(arena, &small, &notes, 1024, &d), first);
    assert_int_equal(notes.zeroed, 1);
    /* A large region has a slab of its own. */
    take(arena, &small, &notes, 10000, &a);
    assert_int_equal(notes.allocated, 2);
    assert_int_equal(a.slab->bytes, 10240);
    assert_int_equal(notes.released, 0);
    rondo_arena_destroy(arena);
    assert_int_equal(notes.released, 2);
}

static void test_sources(void **state)
{
    (void) state;
    struct rondo_arena *arena;
    struct notes one = {0}, other = {0};
    struct rondo_region a, b, c;
    assert_int_equal(rondo_arena_create(&arena, 8192), RONDO_SUCCESS);
    assert_int_equal(rondo_arena_budget(arena), 8192);
    take(arena, &small, &one, 256, &a);
    take(arena, &small, &other, 256, &b);
    take(arena, &large, &one, 256, &c);
    assert_true(a.slab != b.slab && a.slab != c.slab && b.slab != c.slab);
    assert_int_equal(c.slab->bytes, 65536);
    assert_int_equal(one.allocated, 2);
    assert_int_equal(other.allocated, 1);
    /* One budget covers all sources, whatever their slabs take. */
    take(arena, &large, &other, 8192 - 4 * 256, &b);
    take(arena, &small, &other, 256, &b);
    assert_int_equal(rondo_arena_allocate(arena, &small, &one, 1, &b), RONDO_ERR_MEMORY);
    assert_non_null(strstr(rondo_last_error(), "8192 of 8192"));
    assert_int_equal(rondo_arena_allocate(arena, &small, &one, SIZE_MAX, &b), RONDO_ERR_MEMORY);
    rondo_arena_release(arena, &a);
    take(arena, &large, &one, 256, &a);
    rondo_arena_destroy(arena);
    assert_int_equal(one.released, one.allocated);
    assert_int_equal(other.released, other.allocated);
}

static void test_failures(void **state)
{
    (void) state;
    struct rondo_arena *arena;
    struct notes notes = {.failing = 1};
    struct rondo_region a;
    assert_int_equal(rondo_arena_create(&arena, 1 << 20), RONDO_SUCCESS);
    assert_int_equal(rondo_arena_allocate(arena, &small, &notes, 1, &a), RONDO_ERR_DEVICE);
    assert_int_equal(rondo_arena_reserved(arena), 0);
    notes.failing = 0;
    char *memory = take(arena, &small, &notes, 1, &a);
    rondo_arena_release(arena, &a);
    /* Memory that cannot be zeroed is not handed out, and is not lost. */
    notes.failing = 1;
    assert_int_equal(rondo_arena_allocate(arena, &small, &notes, 1, &a), RONDO_ERR_DEVICE);
    assert_int_equal(rondo_arena_reserved(arena), 0);
    notes.failing = 0;
    assert_ptr_equal(take(arena, &small, &notes, 1, &a), memory);
    rondo_arena_destroy(arena);
    rondo_arena_destroy(NULL);
    assert_int_equal(notes.released, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_regions),
        cmocka_unit_test(test_sources),
        cmocka_unit_test(test_failures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * Two binary trees, each for half of the data (Sanders, Speck, Traeff 2009): the inner ranks of the one are leaves of the
 * other, so that all links carry data in both directions. Rooted collectives send the second half to, or receive it from, the
 * second tree's root. Relies on the language alone; recursion is as deep as the tree.
 */
#include "lib/algorithms/builders.h"

/* Returns the parent of rank r in the tree of n ranks in which a parent differs from its children in the lowest bits; -1 for
 * rank 0, the root. */
static int plain_parent(int r, int n)
{
    if (r == 0)
        return -1;
    int bit = r & -r, up = (r ^ bit) | bit << 1;
    return up < n ? up : r ^ bit;
}

/* Returns the rank that has place r of the plain tree. The second tree is the first one's mirror image, or, with an odd number
 * of ranks, shifted by one. */
static int from_plain(int r, int n, int tree)
{
    return tree == 0 ? r : n % 2 == 0 ? n - 1 - r : (r + 1) % n;
}

struct tree {
    rondo_program_t program;
    int n, which, first; /* ranks are counted from `first` on */
};

static int real(const struct tree *t, int plain)
{
    return (from_plain(plain, t->n, t->which) + t->first) % t->n;
}

/* Reduces the subtree under a rank of the plain tree; returns the result at that rank. */
static rondo_chunk_t up(const struct tree *t, int plain)
{
    rondo_chunk_t c = rondo_chunk(t->program, real(t, plain), IN, (size_t) t->which, 1);
    for (int child = 1; child < t->n; child++)
        if (plain_parent(child, t->n) == plain)
            c = rondo_chunk_reduce(c, up(t, child));
    return c;
}

/* Copies the chunk down the subtree. has: a rank that has the chunk in its input and gets no copy; -1: none. */
static void down(const struct tree *t, int plain, rondo_chunk_t c, int has)
{
    for (int child = 1; child < t->n; child++) {
        int to = real(t, child);
        if (plain_parent(child, t->n) == plain)
            down(t, child,
                 to == has ? rondo_chunk(t->program, to, IN, (size_t) t->which, 1)
                           : rondo_chunk_copy(c, to, OUT, (size_t) t->which),
                 has);
    }
}

rondo_result_t rondo_compose_tree(const struct rondo_shape *shape, rondo_program_t *result)
{
    int n = shape->size;
    if (n > 4096)
        return rondo_fail(RONDO_ERR_UNSUPPORTED, "tree: %d ranks are more than 4096", n);
    rondo_result_t status = rondo_program_builder_create_shaped(result, "tree", shape, 2, shape->kind == RONDO_KIND_ALLREDUCE);
    if (status != RONDO_SUCCESS)
        return status;
    rondo_program_t p = *result;
    int rooted = shape->kind != RONDO_KIND_ALLREDUCE;
    rondo_program_parallelize(p, shape->channels);
    for (int which = 0; which < 2; which++) {
        struct tree t = {p, n, which, 0};
        if (rooted) /* the first tree begins at the root */
            t.first = shape->root;
        int top = real(&t, 0);
        if (shape->kind == RONDO_KIND_ALLREDUCE) {
            down(&t, 0, up(&t, 0), -1);
        } else if (shape->kind == RONDO_KIND_REDUCE) {
            rondo_chunk_copy(up(&t, 0), shape->root, OUT, (size_t) which);
        } else {
            rondo_chunk_t c = rondo_chunk(p, shape->root, IN, (size_t) which, 1);
            if (top != shape->root)
                c = rondo_chunk_copy(c, top, OUT, (size_t) which);
            down(&t, 0, c, shape->root);
        }
    }
    rondo_program_serialize(p);
    return RONDO_SUCCESS;
}

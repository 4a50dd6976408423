/* The choice of a rank's NICs by distances from a made-up /sys. */
#include "transport/memory/memory_node.h"
#include "transport/rdma/rail_choice.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

enum { NODES = 3, MOST = 4 };

/* Nodes 0 and 1 are near each other, node 2 is far from both, and the distance back may be shorter. */
static const char *const distances[NODES] = {"10 12 32\n", "12 10 21\n", "32 21 10\n"};
static char root[] = "/tmp/rondo-rails-XXXXXX";

static void path_of(char path[256], int node, const char *file)
{
    snprintf(path, 256, "%s/devices/system/node/node%d%s", root, node, file);
}

static int make_root(void **state)
{
    char path[256];
    (void) state;
    assert_non_null(mkdtemp(root));
    static const char *const folders[] = {"/devices", "/devices/system", "/devices/system/node"};
    for (int i = 0; i < 3; i++) {
        snprintf(path, sizeof(path), "%s%s", root, folders[i]);
        assert_int_equal(mkdir(path, 0755), 0);
    }
    for (int node = 0; node < NODES; node++) {
        path_of(path, node, "");
        assert_int_equal(mkdir(path, 0755), 0);
        path_of(path, node, "/distance");
        FILE *file = fopen(path, "w");
        assert_non_null(file);
        fputs(distances[node], file);
        fclose(file);
    }
    return 0;
}

static int remove_root(void **state)
{
    char path[256];
    (void) state;
    for (int node = 0; node < NODES; node++) {
        path_of(path, node, "/distance");
        unlink(path);
        path_of(path, node, "");
        rmdir(path);
    }
    static const char *const folders[] = {"/devices/system/node", "/devices/system", "/devices", ""};
    for (int i = 0; i < 4; i++) {
        snprintf(path, sizeof(path), "%s%s", root, folders[i]);
        rmdir(path);
    }
    return 0;
}

static void test_distances(void **state)
{
    (void) state;
    assert_int_equal(rondo_memory_distance(root, 0, 0), 10);
    assert_int_equal(rondo_memory_distance(root, 0, 2), 32);
    assert_int_equal(rondo_memory_distance(root, 1, 2), 21);
    assert_int_equal(rondo_memory_distance(root, 0, 3), -1); /* no such node */
    assert_int_equal(rondo_memory_distance(root, 3, 0), -1);
}

/* The chosen ports as a text of their numbers. */
static const char *choose_places(const struct rondo_rail_place *places, int count, int node, int turn)
{
    static char text[64];
    int chosen[MOST], taken = rondo_rails_choose(places, count, node, root, turn, MOST, chosen);
    text[0] = '\0';
    for (int i = 0; i < taken; i++)
        snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%d", i > 0 ? " " : "", chosen[i]);
    return text;
}

static const char *choose(const int *nodes, int count, int node, int turn)
{
    struct rondo_rail_place places[16];
    for (int i = 0; i < count; i++)
        places[i] = (struct rondo_rail_place){nodes[i], 0};
    return choose_places(places, count, node, turn);
}

static void test_nearest(void **state)
{
    (void) state;
    static const int nodes[] = {0, 1, 2, 0, 2};
    assert_string_equal(choose(nodes, 5, 0, 0), "0 3");
    assert_string_equal(choose(nodes, 5, 1, 0), "1");
    assert_string_equal(choose(nodes, 5, 2, 0), "2 4");
    static const int none_at_hand[] = {2, 1, 2};
    assert_string_equal(choose(none_at_hand, 3, 0, 0), "1"); /* because 12 is less than 32 */
    static const int far_only[] = {2, 2};
    assert_string_equal(choose(far_only, 2, 0, 0), "0 1"); /* a distant NIC is better than none */
}

static void test_unknown(void **state)
{
    (void) state;
    static const int unknown[] = {-1, -1}, some[] = {-1, 2, -1};
    assert_string_equal(choose(unknown, 2, -1, 0), "0 1");
    assert_string_equal(choose(unknown, 2, 1, 0), "0 1");
    assert_string_equal(choose(some, 3, 0, 0), "1"); /* distant, but its node is known */
    assert_string_equal(choose(some, 3, -1, 0), "0 1 2");
    assert_string_equal(choose(some, 0, 0, 0), "");
    static const int not_in_sysfs[] = {7, 8};
    assert_string_equal(choose(not_in_sysfs, 2, 7, 0), "0");
}

/* If there are more ports than a rank uses, ranks take different ones in turn. */
static void test_turns(void **state)
{
    (void) state;
    static const int nodes[] = {0, 0, 0, 2, 0, 0, 0, 0, 0};
    assert_string_equal(choose(nodes, 9, 0, 0), "0 1 2 4");
    assert_string_equal(choose(nodes, 9, 0, 1), "5 6 7 8");
    assert_string_equal(choose(nodes, 9, 0, 2), "0 1 2 4");
    assert_string_equal(choose(nodes, 6, 0, 1), "0 1 2 5"); /* 4 ports, then again from the beginning */
    assert_string_equal(choose(nodes, 9, 2, 1), "3");
}

/* Of the NICs on the GPU's node, those behind the same switch; a NIC behind a switch on another node is distant. */
static void test_bridges(void **state)
{
    (void) state;
    static const struct rondo_rail_place places[] = {{0, 0}, {0, 2}, {2, 3}, {0, 1}, {0, 2}, {-1, 4}};
    assert_string_equal(choose_places(places, 6, 0, 0), "1 4");
    assert_string_equal(choose_places(places, 6, 2, 0), "2");
    assert_string_equal(choose_places(places, 6, -1, 0), "5"); /* where nodes are unknown, bridges decide */
    assert_string_equal(choose_places(places, 1, 0, 0), "0");
}

/* The kernel's layout of PCI devices: nested folders, and links to them by address. */
static void test_shared_bridges(void **state)
{
    (void) state;
    static const char *const folders[] = {"/pci",
                                          "/pci/pci0000:15",
                                          "/pci/pci0000:15/0000:15:01.0",
                                          "/pci/pci0000:15/0000:15:01.0/0000:16:00.0",
                                          "/pci/pci0000:15/0000:15:01.0/0000:16:00.0/0000:17:00.0", /* GPU */
                                          "/pci/pci0000:15/0000:15:01.0/0000:16:00.0/0000:17:01.0", /* NIC, same switch */
                                          "/pci/pci0000:15/0000:15:01.0/0000:16:01.0",              /* same root port */
                                          "/pci/pci0000:15/0000:15:02.0",                           /* same root */
                                          "/pci/pci0000:5",
                                          "/pci/pci0000:5/0000:05:01.0"};
    enum { FOLDERS = sizeof(folders) / sizeof(folders[0]) };
    static const int shared[FOLDERS] = {[5] = 2, [6] = 1, [7] = 0, [9] = 0};
    char path[256], gpu[256], link[256];
    for (int i = 0; i < FOLDERS; i++) {
        snprintf(path, sizeof(path), "%s%s", root, folders[i]);
        assert_int_equal(mkdir(path, 0755), 0);
    }
    snprintf(path, sizeof(path), "%s%s", root, folders[4]);
    snprintf(gpu, sizeof(gpu), "%s/gpu", root);
    assert_int_equal(symlink(path, gpu), 0);
    for (int i = 5; i < FOLDERS; i++) {
        snprintf(path, sizeof(path), "%s%s", root, folders[i]);
        snprintf(link, sizeof(link), "%s/card", root);
        assert_int_equal(symlink(path, link), 0);
        assert_int_equal(rondo_rails_bridges(gpu, link), shared[i]);
        assert_int_equal(rondo_rails_bridges(link, gpu), shared[i]);
        assert_int_equal(unlink(link), 0);
    }
    assert_int_equal(rondo_rails_bridges(gpu, "/nowhere"), 0);
    unlink(gpu);
    for (int i = FOLDERS - 1; i >= 0; i--) {
        snprintf(path, sizeof(path), "%s%s", root, folders[i]);
        rmdir(path);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_distances), cmocka_unit_test(test_nearest), cmocka_unit_test(test_unknown),
        cmocka_unit_test(test_turns),     cmocka_unit_test(test_bridges), cmocka_unit_test(test_shared_bridges),
    };
    return cmocka_run_group_tests(tests, make_root, remove_root);
}

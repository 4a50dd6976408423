/* The file of a timeline, whatever happens to it: the events that cannot be written are dropped and counted, the file stays
 * JSON, and the process lives. */
#include "lib/diagnostics/timeline_parts.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define EVENTS 20000 /* more than the buffer holds, many times */

static char folder[] = "/tmp/rondo-timeline-XXXXXX";
static char path[64];

static int make_folder(void **state)
{
    (void) state;
    if (mkdtemp(folder) == NULL)
        return -1;
    snprintf(path, sizeof(path), "%s/trace.json", folder);
    return 0;
}

static int remove_folder(void **state)
{
    (void) state;
    unlink(path);
    return rmdir(folder);
}

static void begin(struct rondo_timeline_file *file, uint64_t most)
{
    memset(file, 0, sizeof(*file));
    assert_int_equal(rondo_timeline_file_create(file, path, 0, most), RONDO_SUCCESS);
    assert_int_equal(rondo_timeline_file_empty(file), RONDO_SUCCESS);
    assert_int_equal(rondo_timeline_file_open(file), RONDO_SUCCESS);
}

/* As the text does it: one event a record. Returns how many were admitted. */
static uint64_t add(struct rondo_timeline_file *file, int events)
{
    uint64_t admitted = 0;
    for (int i = 0; i < events; i++)
        if (rondo_timeline_file_admits(file)) {
            rondo_timeline_file_event(file, "{\"name\":\"event\",\"ph\":\"i\",\"pid\":0,\"ts\":%d,\"args\":{}}", i);
            admitted++;
        }
    return admitted;
}

/* Checks that the file is a list of lines, each but the last followed by a comma; returns how many have the word. */
static int count_lines(const char *word)
{
    FILE *text = fopen(path, "r");
    char line[1024], last[1024] = "";
    int found = 0, events = 0;
    assert_non_null(text);
    assert_non_null(fgets(line, sizeof(line), text));
    assert_string_equal(line, "[\n");
    while (fgets(line, sizeof(line), text) != NULL) {
        if (strcmp(line, "]\n") == 0)
            assert_string_not_equal(last + strlen(last) - 2, ",\n");
        else
            assert_true(line[0] == '{' && strchr(line, '\n') != NULL);
        if (events++ > 0 && line[0] == '{')
            assert_string_equal(last + strlen(last) - 3, "},\n");
        found += strstr(line, word) != NULL;
        strcpy(last, line);
    }
    assert_string_equal(last, "]\n");
    fclose(text);
    return found;
}

static void test_all_is_written(void **state)
{
    (void) state;
    struct rondo_timeline_file file;
    begin(&file, 0);
    assert_int_equal(add(&file, EVENTS), EVENTS);
    rondo_timeline_file_end(&file);
    assert_false(file.broken);
    assert_int_equal(file.dropped, 0);
    rondo_timeline_file_destroy(&file);
    assert_int_equal(count_lines("\"event\""), EVENTS);
}

static void test_share(void **state)
{
    (void) state;
    struct rondo_timeline_file file;
    struct stat about;
    char words[64];
    begin(&file, 100000);
    const uint64_t admitted = add(&file, EVENTS);
    assert_in_range(admitted, 500, EVENTS - 1);
    assert_int_equal(file.dropped, EVENTS - admitted);
    rondo_timeline_file_end(&file);
    rondo_timeline_file_destroy(&file);
    assert_int_equal(stat(path, &about), 0);
    assert_in_range(about.st_size, 80000, 100000 + 64); /* the file's first line is of no rank */
    assert_int_equal(count_lines("\"event\""), admitted);
    assert_int_equal(count_lines("\"trace full\""), 1);
    snprintf(words, sizeof(words), "\"count\":%llu", (unsigned long long) (EVENTS - admitted));
    assert_int_equal(count_lines(words), 1);
}

/* A write that fails in the middle, by the limit of file sizes, raises no signal and leaves the file as it was. */
static void test_limit_of_file_sizes(void **state)
{
    (void) state;
    struct rondo_timeline_file file;
    struct rlimit before, limit;
    const int first = 3000;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    begin(&file, 0);
    add(&file, first);
    rondo_timeline_file_flush(&file);
    limit = before;
    limit.rlim_cur = 300000;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    add(&file, EVENTS);
    rondo_timeline_file_end(&file);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_true(file.broken);
    const int written = count_lines("\"event\"");
    assert_in_range(written, first, first + EVENTS - 1);
    assert_int_equal(file.dropped, first + EVENTS - written);
    rondo_timeline_file_destroy(&file);
}

static void cut(const char *name)
{
    assert_int_equal(truncate(name, 0), 0);
}

static void shorten(const char *name)
{
    assert_int_equal(truncate(name, 1000), 0);
}

static void append_text(const char *name)
{
    FILE *text = fopen(name, "a");
    assert_non_null(text);
    fputs("something else\n", text);
    fclose(text);
}

static void take_away(const char *name)
{
    assert_int_equal(unlink(name), 0);
}

static void test_changed_by_others(void **state)
{
    static void (*const changes[])(const char *) = {cut, shorten, append_text, take_away};
    (void) state;
    for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
        struct rondo_timeline_file file;
        begin(&file, 0);
        add(&file, 10);
        rondo_timeline_file_flush(&file);
        changes[i](path);
        assert_int_equal(add(&file, 100), 100); /* still in the buffer */
        const uint64_t admitted = add(&file, EVENTS);
        assert_true(admitted < EVENTS && file.broken);
        assert_int_equal(file.dropped, 100 + EVENTS);
        rondo_timeline_file_end(&file);
        rondo_timeline_file_destroy(&file);
    }
}

/* Another process that keeps the lock delays a rank by a second, once. */
static void test_locked(void **state)
{
    (void) state;
    struct rondo_timeline_file file;
    begin(&file, 0);
    FILE *other = fopen(path, "r");
    assert_non_null(other);
    assert_int_equal(flock(fileno(other), LOCK_EX), 0);
    add(&file, EVENTS);
    rondo_timeline_file_end(&file);
    assert_true(file.broken);
    assert_int_equal(file.dropped, EVENTS);
    rondo_timeline_file_destroy(&file);
    fclose(other);
}

/* What is no regular file breaks the timeline at once, and is not waited for. */
static void test_no_file(void **state)
{
    (void) state;
    static const char *const devices[] = {"/dev/full", "/dev/null"};
    struct rondo_timeline_file file;
    for (int i = 0; i < 4; i++) {
        const char *name = i < 2 ? devices[i] : path;
        unlink(path);
        if (i == 2)
            assert_int_equal(mkfifo(path, 0600), 0);
        if (i == 3)
            assert_int_equal(mkdir(path, 0700), 0);
        memset(&file, 0, sizeof(file));
        assert_int_equal(rondo_timeline_file_create(&file, name, 0, 0), RONDO_SUCCESS);
        assert_int_equal(rondo_timeline_file_empty(&file), RONDO_SUCCESS);
        assert_true(file.broken && file.descriptor < 0);
        assert_int_equal(rondo_timeline_file_open(&file), RONDO_SUCCESS);
        add(&file, 10);
        rondo_timeline_file_end(&file);
        assert_int_equal(file.dropped, 10);
        rondo_timeline_file_destroy(&file);
    }
    rmdir(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_is_written),    cmocka_unit_test(test_share),  cmocka_unit_test(test_limit_of_file_sizes),
        cmocka_unit_test(test_changed_by_others), cmocka_unit_test(test_locked), cmocka_unit_test(test_no_file)};
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}

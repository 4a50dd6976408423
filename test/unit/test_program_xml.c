/* Programs as XML: written programs can be read again, msccl-tools' programs can be read, and malformed or hostile files are
 * refused. */
#include "test/unit/support/builtins.h"
#include "lib/program/program.h"
#include "rondo_program.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "test/unit/support/verdicts.h"

static void write_and_read(const char *name, const char *collective, void *with)
{
    int *written = with;
    for (int ranks = 2; ranks <= 8; ranks += 3) {
        rondo_program_t p, again;
        char *text, *second;
        if (rondo_program_builtin(name, collective, ranks, 2, 1, &p) != RONDO_SUCCESS)
            continue;
        rondo_result_t result = rondo_program_write_xml(p, &text);
        rondo_program_destroy(p);
        if (result == RONDO_ERR_UNSUPPORTED)
            continue;
        assert_right(result);
        if (rondo_program_read_xml(text, strlen(text), &again) != RONDO_SUCCESS ||
            rondo_program_check(again, NULL) != RONDO_SUCCESS)
            fail_msg("%s %s %d ranks: %s\n%s", name, collective, ranks, rondo_last_error(), text);
        assert_right(rondo_program_write_xml(again, &second));
        rondo_program_text_free(second);
        rondo_program_destroy(again);
        rondo_program_text_free(text);
        ++*written;
    }
}

static void test_round_trip(void **state)
{
    (void) state;
    int written = 0;
    each_builtin(write_and_read, &written);
    assert_true(written >= 40);
}

static void refuse_xml(const char *text, const char *words)
{
    rondo_program_t p;
    rondo_result_t result = rondo_program_read_xml(text, strlen(text), &p);
    if (result == RONDO_SUCCESS) {
        result = rondo_program_check(p, NULL);
        rondo_program_destroy(p);
    }
    assert_says(result, RONDO_ERR_ARGUMENT, words);
}

#define ALGO(rest) "<algo name='x' ngpus='2' coll='allreduce' inplace='1' nchunksperloop='1'>\n" rest
#define PAIR(first, second)                                                                                                    \
    ALGO("<gpu id='0' i_chunks='1' o_chunks='0' s_chunks='0'><tb id='0' send='1' recv='1' chan='0'>" first                     \
         "</tb></gpu>\n<gpu id='1' i_chunks='1' o_chunks='0' s_chunks='0'><tb id='0' send='0' recv='0' chan='0'>" second       \
         "</tb></gpu></algo>")
#define STEP(s, type)                                                                                                          \
    "<step s='" s "' type='" type "' srcbuf='i' srcoff='0' dstbuf='i' dstoff='0' cnt='1' depid='-1' deps='-1'/>"

static void test_hostile_xml(void **state)
{
    (void) state;
    refuse_xml("", "no element");
    refuse_xml("<algo", "ends within");
    refuse_xml("<!DOCTYPE x [<!ENTITY a 'aaaa'>]><algo/>", "document types");
    refuse_xml("<algo name='&a;'/>", "& in an attribute");
    refuse_xml("hello", "text where");
    refuse_xml(ALGO(""), "ends before");
    refuse_xml(ALGO("</gpu>"), "line 2");
    refuse_xml(ALGO("</algo>"), "no gpu with id 0");
    refuse_xml(ALGO("<tb/></algo>"), "expected an element gpu");
    refuse_xml("<algo name='x' ngpus='99999999' coll='allreduce' nchunksperloop='1'/>", "ngpus");
    refuse_xml("<algo name='x' ngpus='2' coll='sum' nchunksperloop='1'/>", "sum");
    refuse_xml("<algo name='x' ngpus='two' coll='allreduce' nchunksperloop='1'/>", "whole number");
    refuse_xml("<a><a><a><a><a><a><a><a><a><a>", "expected an element algo");
    refuse_xml(PAIR(STEP("1", "s"), ""), "out of order");
    refuse_xml(PAIR(STEP("0", "jump"), ""), "unknown type");
    refuse_xml(
        PAIR("<step s='0' type='s' srcbuf='i' srcoff='7' dstbuf='i' dstoff='0' depid='-1' deps='-1'/>", STEP("0", "rrc")),
        "do not exist");
    refuse_xml(PAIR("<step s='0' type='s' srcbuf='i' srcoff='0' dstbuf='i' dstoff='0' depid='3' deps='0'/>", ""),
               "does not exist");
    refuse_xml(PAIR(STEP("0", "s"), ""), "but not the other way round");
    refuse_xml(PAIR(STEP("0", "rrc"), STEP("0", "rrc")), "deadlock");
    refuse_xml(PAIR(STEP("0", "s"), STEP("0", "rrc")), "must be");
    refuse_xml(
        PAIR("<step s='0' type='s' srcbuf='s' srcoff='0' dstbuf='i' dstoff='0' depid='-1' deps='-1'/>", STEP("0", "rrc")),
        "do not exist");
}

/* An in-place all-reduce of two ranks as msccl-tools writes it: one rank sends, the other reduces and sends back. */
static void test_msccl(void **state)
{
    (void) state;
    static const char text[] = PAIR(STEP("0", "s") STEP("1", "r"), STEP("0", "rrcs"));
    rondo_program_t p;
    assert_right(rondo_program_read_xml(text, strlen(text), &p));
    assert_right(rondo_program_check(p, NULL));
    rondo_program_destroy(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_hostile_xml),
        cmocka_unit_test(test_msccl),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

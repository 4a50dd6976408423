/* Reads data/digits.txt: one digit a line, "LABEL PIXELS", a pixel one character of 0 to 9 and a to g. */
#include "digits.h"
#include "random.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINE_LENGTH = 2 + DIGIT_PIXELS, TEST_SHARE = 5 /* one digit in five is kept for the test */ };
static const char LEVELS[] = "0123456789abcdefg";

static bool parse(const char *line, struct digit *digit)
{
    if (strcspn(line, "\n") != LINE_LENGTH || line[0] < '0' || line[0] > '9' || line[1] != ' ')
        return false;
    digit->label = line[0] - '0';
    for (int i = 0; i < DIGIT_PIXELS; i++) {
        const char *level = strchr(LEVELS, line[2 + i]);
        if (!level)
            return false;
        digit->pixels[i] = (float) (level - LEVELS) / 16.0f;
    }
    return true;
}

struct digit *digits_read(const char *path, int *count)
{
    struct digit *digits = NULL;
    int capacity = 0, used = 0;
    char line[LINE_LENGTH + 2];
    FILE *file = fopen(path, "r");
    if (!file) {
        fprintf(stderr, "%s: %s\n", path, strerror(errno));
        return NULL;
    }
    while (fgets(line, sizeof line, file)) {
        if (used == capacity) {
            capacity = capacity ? 2 * capacity : 1024;
            struct digit *larger = realloc(digits, (size_t) capacity * sizeof *digits);
            if (!larger) {
                fprintf(stderr, "%s: no memory for %d digits\n", path, capacity);
                goto fail;
            }
            digits = larger;
        }
        if (!parse(line, &digits[used++])) {
            fprintf(stderr, "%s:%d: not a digit and its %d pixels\n", path, used, DIGIT_PIXELS);
            goto fail;
        }
    }
    if (ferror(file) || used == 0) {
        fprintf(stderr, "%s: %s\n", path, ferror(file) ? "cannot be read" : "no digits in it");
        goto fail;
    }
    fclose(file);
    *count = used;
    return digits;

fail:
    fclose(file);
    free(digits);
    return NULL;
}

bool samples_read(const char *path, struct samples *samples)
{
    int count;
    samples->digits = digits_read(path, &count);
    int *which = samples->digits ? malloc((size_t) count * sizeof *which) : NULL;
    if (!which) {
        free(samples->digits);
        return false;
    }
    for (int i = 0; i < count; i++)
        which[i] = i;
    uint64_t random = 0; /* no option's seed: runs are compared on the same test */
    random_shuffle(which, count, &random);
    samples->train_count = count - (count + TEST_SHARE - 1) / TEST_SHARE;
    samples->test_count = count - samples->train_count;
    samples->train = which;
    samples->test = which + samples->train_count;
    return true;
}

void samples_free(struct samples *samples)
{
    free(samples->train);
    free(samples->digits);
}

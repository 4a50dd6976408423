/* Reads data/digits.txt: one digit a line, "LABEL PIXELS", a pixel one character of 0 to 9 and a to g. */
#include "digits.h"
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINE_LENGTH = 2 + DIGIT_PIXELS };
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

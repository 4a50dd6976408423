/* The handwritten digits of data/digits.txt, which data/README describes. */
#ifndef EXAMPLES_DIGITS_H
#define EXAMPLES_DIGITS_H

#include <stdbool.h>

enum { DIGIT_PIXELS = 64, DIGIT_CLASSES = 10 };

struct digit {
    float pixels[DIGIT_PIXELS]; /* row by row; 0 (paper) to 1 (ink) */
    int label;
};

/* Reads the file; *count becomes the number of digits in the array returned, which the caller frees. On failure it says why on
 * standard error and returns NULL. */
struct digit *digits_read(const char *path, int *count);

/* Which of the digits are for training and which for the test: the same in every process. */
struct samples {
    struct digit *digits;
    int *train, *test;
    int train_count, test_count;
};

/* Reads the file and divides its digits. On failure it says why on standard error and returns false. */
bool samples_read(const char *path, struct samples *samples);
void samples_free(struct samples *samples);

#endif

/* The handwritten digits of data/digits.txt, which data/README describes. */
#ifndef EXAMPLES_DIGITS_H
#define EXAMPLES_DIGITS_H

enum { DIGIT_PIXELS = 64, DIGIT_CLASSES = 10 };

struct digit {
    float pixels[DIGIT_PIXELS]; /* row by row; 0 (paper) to 1 (ink) */
    int label;
};

/* Reads the file; *count becomes the number of digits in the array returned, which the caller frees. On failure it says why on
 * standard error and returns NULL. */
struct digit *digits_read(const char *path, int *count);

#endif

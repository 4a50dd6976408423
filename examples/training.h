/* What train.c and elastic.c have in common: the options of a training, and which part of a batch is a rank's. */
#ifndef EXAMPLES_TRAINING_H
#define EXAMPLES_TRAINING_H

#include "network.h"

enum { TRAINING_MOST_RANKS = 64 };

struct training {
    int epochs, batch, ranks;
    uint64_t seed;
    double required_accuracy; /* of the test, per cent */
    const char *data;
};

#define TRAINING_DEFAULT                                                                                                       \
    {                                                                                                                          \
        .epochs = 30, .batch = 32, .seed = 1, .data = "examples/data/digits.txt"                                               \
    }

/* Rows for getopt_long; training_option takes their values. */
#define TRAINING_OPTIONS                                                                                                       \
    {"epochs", required_argument, NULL, 'e'}, {"batch", required_argument, NULL, 'b'}, {"seed", required_argument, NULL, 's'}, \
        {"ranks", required_argument, NULL, 'r'}, {"require-accuracy", required_argument, NULL, 'a'},                           \
    {                                                                                                                          \
        "data", required_argument, NULL, 'd'                                                                                   \
    }

/* Lines of a program's usage, but for the ranks and the seed, which it describes itself. */
#define TRAINING_USAGE                                                                                                         \
    "  --epochs N            times through the training digits (30)\n"                                                         \
    "  --batch N             digits a step, all ranks together (32)\n"                                                         \
    "  --require-accuracy X  exit 1 when fewer than X %% of the test's digits are told right (0)\n"                            \
    "  --data FILE           the digits (examples/data/digits.txt)\n"

/* Takes the value of one of TRAINING_OPTIONS, by its letter. False: there is no such letter, or the value is wrong. */
bool training_option(struct training *training, int letter, const char *text);
/* Reads a whole number from `least` to `most`. False: it is none. */
bool training_number(const char *text, long least, long most, int *value);

/* Where the rank's share of count digits begins; the next rank's begins where it ends. */
int training_share(int count, int rank, int size);
/* The step that gradients of a whole batch make. */
void training_update(struct network *network);

#endif

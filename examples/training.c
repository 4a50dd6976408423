/* See training.h. */
#include "training.h"
#include <stdlib.h>

static const float LEARNING_RATE = 0.05f, MOMENTUM = 0.9f;

bool training_number(const char *text, long least, long most, int *value)
{
    char *end;
    const long number = strtol(text, &end, 10);
    *value = (int) number;
    return end != text && *end == 0 && number >= least && number <= most;
}

bool training_option(struct training *training, int letter, const char *text)
{
    char *end;
    switch (letter) {
    case 'e':
        return training_number(text, 0, 1000000, &training->epochs);
    case 'b':
        return training_number(text, 1, 65536, &training->batch);
    case 's':
        training->seed = strtoull(text, &end, 10);
        return end != text && *end == 0;
    case 'r':
        return training_number(text, 1, TRAINING_MOST_RANKS, &training->ranks);
    case 'a':
        training->required_accuracy = strtod(text, &end);
        return end != text && *end == 0;
    case 'd':
        training->data = text;
        return true;
    default:
        return false;
    }
}

int training_share(int count, int rank, int size)
{
    return (int) ((int64_t) count * rank / size);
}

void training_update(struct network *network)
{
    network_update(network, LEARNING_RATE, MOMENTUM);
}

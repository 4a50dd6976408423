/* A small neural network that tells digits apart: fully connected layers with ReLU between them and softmax cross-entropy at
 * the end, trained by gradient descent with momentum. It knows nothing of ranks: train.c sums the gradients. */
#ifndef EXAMPLES_NETWORK_H
#define EXAMPLES_NETWORK_H

#include "digits.h"
#include <stdbool.h>
#include <stdint.h>

enum { NETWORK_LAYERS = 3, NETWORK_TENSORS = 2 * NETWORK_LAYERS };

struct tensor {
    int count;
    float *value, *gradient, *velocity; /* count elements each */
};

struct network {
    struct tensor tensors[NETWORK_TENSORS]; /* layer l's weights [outputs][inputs] are tensor 2l, its biases 2l + 1 */
    int samples;                            /* of the last network_forward */
    float *outputs[NETWORK_LAYERS + 1];     /* [samples][width] after each layer; 0 is the pixels, the last the probabilities */
    float *errors[NETWORK_LAYERS + 1];      /* the loss's derivatives by what went into the layers' ReLU or softmax */
};

/* Equal seeds make equal networks. At most `capacity` samples may be passed through at once. False: out of memory. */
bool network_create(struct network *network, int capacity, uint64_t seed);
void network_destroy(struct network *network);

/* Passes digits[which[0..samples)] through the network. */
void network_forward(struct network *network, const struct digit *digits, const int *which, int samples);
/* How many of the samples just passed through were told right. */
int network_correct(const struct network *network, const struct digit *digits, const int *which);
/* Propagates `scale` times the samples' loss back to all layers. Then each tensor's gradient, summed over the samples, may be
 * computed in any order. */
void network_backward(struct network *network, const struct digit *digits, const int *which, float scale);
void network_gradient(struct network *network, int tensor);
void network_update(struct network *network, float rate, float momentum);

/* The sum of all weights and biases, and a hash of their bits. */
double network_checksum(const struct network *network);
uint64_t network_hash(const struct network *network);

#endif

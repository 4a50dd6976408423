/* The network of proxy/network.h: plain loops, one idea a function. */
#include "network.h"
#include "random.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const int WIDTHS[NETWORK_LAYERS + 1] = {DIGIT_PIXELS, 64, 32, DIGIT_CLASSES};

bool network_create(struct network *network, int capacity, uint64_t seed)
{
    bool enough = true;
    memset(network, 0, sizeof *network);
    for (int i = 0; i < NETWORK_TENSORS; i++) {
        const int inputs = WIDTHS[i / 2], outputs = WIDTHS[i / 2 + 1];
        struct tensor *tensor = &network->tensors[i];
        tensor->count = i % 2 ? outputs : outputs * inputs;
        tensor->value = calloc((size_t) tensor->count, sizeof(float));
        tensor->gradient = calloc((size_t) tensor->count, sizeof(float));
        tensor->velocity = calloc((size_t) tensor->count, sizeof(float));
        enough = enough && tensor->value && tensor->gradient && tensor->velocity;
        /* Kaiming initialization: variance 2 / inputs keeps a signal's size through the ReLUs. Biases start at zero. */
        const float largest = sqrtf(6.0f / (float) inputs);
        for (int j = 0; enough && i % 2 == 0 && j < tensor->count; j++)
            tensor->value[j] = largest * random_symmetric(&seed);
    }
    for (int layer = 0; layer <= NETWORK_LAYERS; layer++) {
        network->outputs[layer] = calloc((size_t) capacity * (size_t) WIDTHS[layer], sizeof(float));
        network->errors[layer] = calloc((size_t) capacity * (size_t) WIDTHS[layer], sizeof(float));
        enough = enough && network->outputs[layer] && network->errors[layer];
    }
    if (!enough)
        network_destroy(network);
    return enough;
}

void network_destroy(struct network *network)
{
    for (int i = 0; i < NETWORK_TENSORS; i++) {
        free(network->tensors[i].value);
        free(network->tensors[i].gradient);
        free(network->tensors[i].velocity);
    }
    for (int layer = 0; layer <= NETWORK_LAYERS; layer++) {
        free(network->outputs[layer]);
        free(network->errors[layer]);
    }
    memset(network, 0, sizeof *network);
}

static void softmax(float *values, int count)
{
    float largest = values[0], sum = 0.0f;
    for (int i = 1; i < count; i++)
        largest = fmaxf(largest, values[i]);
    for (int i = 0; i < count; i++)
        sum += values[i] = expf(values[i] - largest);
    for (int i = 0; i < count; i++)
        values[i] /= sum;
}

static void layer_forward(struct network *network, int layer, int sample)
{
    const int inputs = WIDTHS[layer], outputs = WIDTHS[layer + 1];
    const float *weights = network->tensors[2 * layer].value, *biases = network->tensors[2 * layer + 1].value;
    const float *in = network->outputs[layer] + sample * inputs;
    float *out = network->outputs[layer + 1] + sample * outputs;
    for (int o = 0; o < outputs; o++) {
        float sum = biases[o];
        for (int i = 0; i < inputs; i++)
            sum += weights[o * inputs + i] * in[i];
        out[o] = sum;
    }
    if (layer == NETWORK_LAYERS - 1)
        softmax(out, outputs);
    else
        for (int o = 0; o < outputs; o++)
            out[o] = fmaxf(out[o], 0.0f);
}

void network_forward(struct network *network, const struct digit *digits, const int *which, int samples)
{
    network->samples = samples;
    for (int sample = 0; sample < samples; sample++) {
        memcpy(network->outputs[0] + sample * DIGIT_PIXELS, digits[which[sample]].pixels, sizeof digits->pixels);
        for (int layer = 0; layer < NETWORK_LAYERS; layer++)
            layer_forward(network, layer, sample);
    }
}

int network_correct(const struct network *network, const struct digit *digits, const int *which)
{
    int correct = 0;
    for (int sample = 0; sample < network->samples; sample++) {
        const float *probability = network->outputs[NETWORK_LAYERS] + sample * DIGIT_CLASSES;
        int best = 0;
        for (int i = 1; i < DIGIT_CLASSES; i++)
            best = probability[i] > probability[best] ? i : best;
        correct += best == digits[which[sample]].label;
    }
    return correct;
}

/* The errors at a layer's inputs, from those at its outputs; where the ReLU gave zero, nothing passes. */
static void layer_backward(struct network *network, int layer, int sample)
{
    const int inputs = WIDTHS[layer], outputs = WIDTHS[layer + 1];
    const float *weights = network->tensors[2 * layer].value, *in = network->outputs[layer] + sample * inputs;
    const float *error_out = network->errors[layer + 1] + sample * outputs;
    float *error_in = network->errors[layer] + sample * inputs;
    memset(error_in, 0, (size_t) inputs * sizeof *error_in);
    for (int o = 0; o < outputs; o++)
        for (int i = 0; i < inputs; i++)
            error_in[i] += weights[o * inputs + i] * error_out[o];
    for (int i = 0; i < inputs; i++)
        error_in[i] = in[i] > 0.0f ? error_in[i] : 0.0f;
}

void network_backward(struct network *network, const struct digit *digits, const int *which, float scale)
{
    for (int sample = 0; sample < network->samples; sample++) {
        const float *probability = network->outputs[NETWORK_LAYERS] + sample * DIGIT_CLASSES;
        float *error = network->errors[NETWORK_LAYERS] + sample * DIGIT_CLASSES;
        for (int i = 0; i < DIGIT_CLASSES; i++)
            error[i] = scale * (probability[i] - (i == digits[which[sample]].label ? 1.0f : 0.0f));
        for (int layer = NETWORK_LAYERS - 1; layer > 0; layer--)
            layer_backward(network, layer, sample);
    }
}

void network_gradient(struct network *network, int tensor)
{
    const int layer = tensor / 2, inputs = WIDTHS[layer], outputs = WIDTHS[layer + 1];
    float *gradient = network->tensors[tensor].gradient;
    memset(gradient, 0, (size_t) network->tensors[tensor].count * sizeof *gradient);
    for (int sample = 0; sample < network->samples; sample++) {
        const float *in = network->outputs[layer] + sample * inputs, *error = network->errors[layer + 1] + sample * outputs;
        for (int o = 0; o < outputs; o++)
            if (tensor % 2)
                gradient[o] += error[o];
            else
                for (int i = 0; i < inputs; i++)
                    gradient[o * inputs + i] += error[o] * in[i];
    }
}

void network_update(struct network *network, float rate, float momentum)
{
    for (int i = 0; i < NETWORK_TENSORS; i++) {
        struct tensor *tensor = &network->tensors[i];
        for (int j = 0; j < tensor->count; j++) {
            tensor->velocity[j] = momentum * tensor->velocity[j] - rate * tensor->gradient[j];
            tensor->value[j] += tensor->velocity[j];
        }
    }
}

double network_checksum(const struct network *network)
{
    double sum = 0.0;
    for (int i = 0; i < NETWORK_TENSORS; i++)
        for (int j = 0; j < network->tensors[i].count; j++)
            sum += (double) network->tensors[i].value[j];
    return sum;
}

uint64_t network_hash(const struct network *network)
{
    uint64_t hash = 0xcbf29ce484222325u; /* FNV-1a, a value at a time */
    for (int i = 0; i < NETWORK_TENSORS; i++)
        for (int j = 0; j < network->tensors[i].count; j++) {
            uint32_t bits;
            memcpy(&bits, &network->tensors[i].value[j], sizeof bits);
            hash = (hash ^ bits) * 0x100000001b3u;
        }
    return hash;
}

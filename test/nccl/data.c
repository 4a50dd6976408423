/* See data.h. */
#include "test/nccl/data.h"

#include <stdint.h>
#include <string.h>

#define PERIOD 55

const char *const type_names[ncclNumTypes] = {"int8", "uint8", "int32",  "uint32",   "int64",      "uint64",
                                              "half", "float", "double", "bfloat16", "float8e4m3", "float8e5m2"};
const char *const op_names[OPS] = {"sum", "prod", "max", "min", "avg", "premul"};

size_t type_bytes(ncclDataType_t type)
{
    static const size_t bytes[ncclNumTypes] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};
    return bytes[type];
}

/* The bits of a small integer as a float with so many mantissa bits. */
static unsigned small_float(int value, int mantissa_bits, int bias)
{
    int exponent = 0;
    if (value == 0)
        return 0;
    while (value >> (exponent + 1) != 0)
        exponent++;
    int rest = value - (1 << exponent);
    unsigned mantissa =
        (unsigned) (exponent <= mantissa_bits ? rest << (mantissa_bits - exponent) : rest >> (exponent - mantissa_bits));
    return (unsigned) (exponent + bias) << mantissa_bits | mantissa;
}

void store(void *element, ncclDataType_t type, int value)
{
    const int64_t wide = value;
    const float single = (float) value;
    const double two = value;
    uint16_t half = (uint16_t) (type == ncclFloat16 ? small_float(value, 10, 15) : small_float(value, 7, 127));
    uint8_t quarter = (uint8_t) (type == ncclFloat8e4m3 ? small_float(value, 3, 7) : small_float(value, 2, 15));
    switch (type) {
    case ncclFloat16:
    case ncclBfloat16:
        memcpy(element, &half, sizeof(half));
        break;
    case ncclFloat8e4m3:
    case ncclFloat8e5m2:
        memcpy(element, &quarter, sizeof(quarter));
        break;
    case ncclFloat32:
        memcpy(element, &single, sizeof(single));
        break;
    case ncclFloat64:
        memcpy(element, &two, sizeof(two));
        break;
    default: /* little-endian */
        memcpy(element, &wide, type_bytes(type));
    }
}

/* Whether the type is so narrow that sums are exact only up to 8 (float8e5m2) and products need powers of two. */
static int is_narrow(ncclDataType_t type)
{
    return type == ncclFloat8e4m3 || type == ncclFloat8e5m2;
}

static int input_at(ncclDataType_t type, int op, int rank, int ranks, size_t index)
{
    int i = (int) (index % PERIOD);
    switch (op) {
    case ncclProd:
        return (i + rank) % ranks == 0 ? 2 : 1;
    case ncclMax:
    case ncclMin:
        return (i * 7 + rank * 3) % 5;
    case ncclAvg: /* the sum is a multiple of the number of ranks */
        return is_narrow(type) ? i % 2 : ranks * ((i + rank) % (type_bytes(type) == 1 ? 2 : 5));
    default:
        return is_narrow(type) ? (i * 3 + rank) % 2 : (i * 7 + rank * 3) % 11;
    }
}

static int reduced_at(ncclDataType_t type, int op, int ranks, size_t index)
{
    int result = input_at(type, op, 0, ranks, index);
    for (int rank = 1; rank < ranks; rank++) {
        int value = input_at(type, op, rank, ranks, index);
        switch (op) {
        case ncclProd:
            result *= value;
            break;
        case ncclMax:
            result = value > result ? value : result;
            break;
        case ncclMin:
            result = value < result ? value : result;
            break;
        default:
            result += value;
        }
    }
    return op == ncclAvg ? result / ranks : op == OP_PREMUL ? PREMUL_FACTOR * result : result;
}

/* Repeats the first `filled` bytes until the buffer is full. */
static void repeat(char *buffer, size_t bytes, size_t filled)
{
    while (filled < bytes) {
        size_t more = filled < bytes - filled ? filled : bytes - filled;
        memcpy(buffer + filled, buffer, more);
        filled += more;
    }
}

void data_input(void *buffer, ncclDataType_t type, int op, int rank, int ranks, size_t first, size_t count)
{
    size_t bytes = type_bytes(type), start = count < PERIOD ? count : PERIOD;
    for (size_t i = 0; i < start; i++)
        store((char *) buffer + i * bytes, type, input_at(type, op, rank, ranks, first + i));
    repeat(buffer, count * bytes, start * bytes);
}

void data_reduced(void *buffer, ncclDataType_t type, int op, int ranks, size_t first, size_t count)
{
    size_t bytes = type_bytes(type), start = count < PERIOD ? count : PERIOD;
    for (size_t i = 0; i < start; i++)
        store((char *) buffer + i * bytes, type, reduced_at(type, op, ranks, first + i));
    repeat(buffer, count * bytes, start * bytes);
}

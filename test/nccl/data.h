/* The inputs of the ranks and the expected results: small integers that every type represents exactly, whatever the order of
 * reduction. */
#ifndef RONDO_TEST_NCCL_DATA_H
#define RONDO_TEST_NCCL_DATA_H

#include <nccl.h>
#include <stddef.h>

/* An operator beyond NCCL's own: a pre-multiplied sum, by PREMUL_FACTOR. */
enum { OP_PREMUL = ncclNumOps, OPS, OP_NONE = ncclSum };
#define PREMUL_FACTOR 2

size_t type_bytes(ncclDataType_t type);
extern const char *const type_names[ncclNumTypes];
extern const char *const op_names[OPS];

/* Stores a small integer in the type's representation. */
void store(void *element, ncclDataType_t type, int value);

/* Elements first to first + count of the input of a rank of so many. */
void data_input(void *buffer, ncclDataType_t type, int op, int rank, int ranks, size_t first, size_t count);
/* The same elements of all ranks' inputs after the reduction. */
void data_reduced(void *buffer, ncclDataType_t type, int op, int ranks, size_t first, size_t count);

#endif

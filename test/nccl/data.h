/* What ranks put into buffers and find in them afterwards: small integers that every type holds exactly, whatever the order in
 * which they are folded. */
#ifndef RONDO_TEST_NCCL_DATA_H
#define RONDO_TEST_NCCL_DATA_H

#include <nccl.h>
#include <stddef.h>

/* One more than NCCL's: a pre-multiplied sum, by PREMUL_FACTOR. */
enum { OP_PREMUL = ncclNumOps, OPS, OP_NONE = ncclSum };
#define PREMUL_FACTOR 2

size_t type_bytes(ncclDataType_t type);
extern const char *const type_names[ncclNumTypes];
extern const char *const op_names[OPS];

/* A small integer as the type stores it. */
void store(void *element, ncclDataType_t type, int value);

/* Elements first to first + count of what a rank of so many puts in. */
void data_input(void *buffer, ncclDataType_t type, int op, int rank, int ranks, size_t first, size_t count);
/* The same elements of all ranks' inputs, reduced. */
void data_reduced(void *buffer, ncclDataType_t type, int op, int ranks, size_t first, size_t count);

#endif

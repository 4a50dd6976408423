/* Finds NCCL's library and its functions at run time (tools/peer/nccl.h), and names its types and operators. */
#include "tools/peer/nccl.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct nccl functions;

static const struct {
    const char *name;
    void *function; /* where its address goes */
} symbols[] = {
    {"ncclGetVersion", &functions.version},    {"ncclGetUniqueId", &functions.make_id},
    {"ncclCommInitRank", &functions.init},     {"ncclCommDestroy", &functions.destroy},
    {"ncclGetErrorString", &functions.error},  {"ncclGetLastError", &functions.last_error},
    {"ncclAllReduce", &functions.allreduce},   {"ncclReduce", &functions.reduce},
    {"ncclBroadcast", &functions.broadcast},   {"ncclReduceScatter", &functions.reduce_scatter},
    {"ncclAllGather", &functions.allgather},   {"ncclSend", &functions.send},
    {"ncclRecv", &functions.receive},          {"ncclGroupStart", &functions.group_start},
    {"ncclGroupEnd", &functions.group_end},    {"ncclCommRegister", &functions.enlist},
    {"ncclCommDeregister", &functions.delist},
};

const struct nccl *nccl_load(char *message, size_t bytes)
{
    /* NVLS is the multicast of the switches, which Rondo does not use either. */
    setenv("NCCL_NVLS_ENABLE", "0", 1);
    void *library = dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL); /* never closed: it has threads of its own */
    if (library == NULL) {
        snprintf(message, bytes, "NCCL cannot be loaded: %s", dlerror());
        return NULL;
    }
    for (size_t i = 0; i < sizeof(symbols) / sizeof(symbols[0]); i++) {
        void *symbol = dlsym(library, symbols[i].name);
        if (symbol == NULL) {
            snprintf(message, bytes, "this libnccl.so.2 has no %s", symbols[i].name);
            return NULL;
        }
        memcpy(symbols[i].function, &symbol, sizeof(symbol));
    }
    return &functions;
}

int nccl_type(rondo_datatype_t type)
{
    static const int types[RONDO_DATATYPE_COUNT] = {
        [RONDO_INT8] = 0,     [RONDO_UINT8] = NCCL_UINT8, [RONDO_INT32] = 2,
        [RONDO_UINT32] = 3,   [RONDO_INT64] = 4,          [RONDO_UINT64] = 5,
        [RONDO_FLOAT16] = 6,  [RONDO_FLOAT] = NCCL_FLOAT, [RONDO_DOUBLE] = NCCL_DOUBLE,
        [RONDO_BFLOAT16] = 9, [RONDO_FLOAT8E4M3] = 10,    [RONDO_FLOAT8E5M2] = 11};
    return type <= RONDO_FLOAT8E5M2 ? types[type] : -1;
}

int nccl_operator(rondo_op_t op)
{
    switch (op) {
    case RONDO_SUM:
        return NCCL_SUM;
    case RONDO_PROD:
        return 1;
    case RONDO_MAX:
        return 2;
    case RONDO_MIN:
        return 3;
    case RONDO_AVG:
        return 4;
    default:
        return -1;
    }
}

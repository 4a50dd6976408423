/*
 * The settings: what the environment and the configuration ask for, after all ranks have agreed. Constant after init.
 */
#ifndef RONDO_LIB_CONTEXT_SETTINGS_H
#define RONDO_LIB_CONTEXT_SETTINGS_H

#include "rondo.h"

#include <stdint.h>

struct rondo_tuning;

enum rondo_direct_write {
    RONDO_DIRECT_WRITE_AUTO,
    RONDO_DIRECT_WRITE_OFF,
    RONDO_DIRECT_WRITE_REFUSED,
    RONDO_DIRECT_WRITE_MIXED
};

enum rondo_single_copy { RONDO_SINGLE_COPY_AUTO, RONDO_SINGLE_COPY_OFF, RONDO_SINGLE_COPY_CMA, RONDO_SINGLE_COPY_REFUSED };

/* To which communicators' calls their compression applies: words of RONDO_COMPRESS_COMMUNICATORS. */
enum rondo_compressed_comms { RONDO_COMPRESSED_ALL, RONDO_COMPRESSED_WORLD, RONDO_COMPRESSED_HOSTS };

struct rondo_settings {
    double timeout;         /* seconds; 0: none */
    double connect_timeout; /* seconds */
    int check;
    uint32_t channels;                    /* largest number of a program: the minimum of all ranks' blocks */
    uint32_t stream_blocks;               /* largest number of an operation on a stream; 0: chosen */
    int copy_engines;                     /* operations on streams that only move data take no kernel where that can be */
    uint32_t slot_bytes;                  /* largest slot of the simple protocol, bytes */
    char algorithm[64];                   /* "": chosen */
    char protocol[16];                    /* one of RONDO_PROTOCOL_NAMES */
    struct rondo_tuning *tuning;          /* NULL: none; owned */
    uint32_t wanted_channels;             /* 0: chosen */
    enum rondo_direct_write direct_write; /* OFF: never used; REFUSED, MIXED: receivers, or those of odd ranks, do not offer */
    int multicast;                        /* whether multicast connectors may be used */
    enum rondo_single_copy single_copy;   /* CMA: of any size; REFUSED: the same, but no source can be read */
    rondo_compression_t compression;      /* of the world */
    enum rondo_compressed_comms compressed_comms;
    uint32_t compressed_types; /* set of rondo_datatype_t to which a communicator's compression applies */
    uint32_t compressed_kinds; /* set of enum rondo_kind, in the same way */
};

#endif

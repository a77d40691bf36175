/* The torch.export target: a Program becomes a .pt2 archive that torch.export.load accepts. */
#ifndef TARGET_DYNAMO_H
#define TARGET_DYNAMO_H

#include "base/file.h"
#include "graph/registry.h"

typedef bool (*DynamoProgress)(void *context, uint64_t bytes_done, uint64_t bytes_total);

typedef struct DynamoOptions {
    bool deferred_asserts;   /* bounds of sizes become assertions in the graph */
    DynamoProgress progress; /* may be NULL; returning true cancels */
    void *progress_context;
} DynamoOptions;

typedef struct DynamoSizes {
    uint64_t graph_bytes, weight_bytes;
    uint32_t nodes, weights;
} DynamoSizes;

/* Make the program one whose operations are all ATen's. */
ferry_status dynamo_legalize(Program *program, const Registry *registry, ferry_error *error);

/* Write a legalized program to an open file. */
ferry_status dynamo_write(Program *program, const DynamoOptions *options, OutputFile *file,
                          DynamoSizes *sizes, ferry_error *error);

#endif

/* torch.export programs (.pt2): the archive, its program as JSON, and the Program made of it.
 *
 * Nothing of the archive is executed and no pickle is read: sample inputs are skipped, a weight that
 * is kept as a pickle is an error. Weights are windows into the mapped file. */
#ifndef SOURCE_PT2_PT2_H
#define SOURCE_PT2_PT2_H

#include "base/file.h"
#include "format/document.h"
#include "format/zip.h"
#include "graph/program.h"

typedef struct Pt2 {
    Arena arena;
    const char *path;
    MappedFile file;
    Zip zip;
    const char *root;               /* the folder that all entries share */
    const Doc *json;                /* models/NAME.json */
    const Doc *weights, *constants; /* their payload configurations, by name; may be NULL */
} Pt2;

/* Open an archive and parse its program. */
ferry_status pt2_open(const char *path, Pt2 **out, ferry_error *error);
void pt2_close(Pt2 *pt2);

/* True when the file starts like a zip archive. */
bool pt2_probe(const char *path);

/* Build the Program. It reads weights from the mapped archive, which must stay open. UNSUPPORTED names
 * the operation and the node when one has no translation. */
ferry_status pt2_build(Pt2 *pt2, Program *program, ferry_error *error);

#endif

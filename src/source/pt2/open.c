/* Opening a .pt2: the entries that make a program, and nothing else. */
#include "base/error.h"
#include "source/pt2/pt2.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SCHEMA_MAJOR = 8, MAX_INFLATED = 64 << 20, MAX_PARSED = 768 << 20 };

bool pt2_probe(const char *path) {
    unsigned char start[4];
    FILE *file = path_is_directory(path) ? NULL : fopen(path, "rb");
    if (!file) return false;
    bool zip = fread(start, 1, 4, file) == 4 && memcmp(start, "PK\3\4", 4) == 0;
    fclose(file);
    return zip;
}

/* The entry "<root>/<name>", or NULL. */
static const ZipEntry *entry(const Pt2 *pt2, const char *name) {
    char full[1024];
    int length = snprintf(full, sizeof full, "%s/%s", pt2->root, name);
    return length > 0 && (size_t)length < sizeof full ? zip_find(&pt2->zip, full) : NULL;
}

static ferry_status find_root(Pt2 *pt2, ferry_error *error) {
    const char *first = pt2->zip.count ? pt2->zip.entries[0].name : "";
    const char *slash = strchr(first, '/');
    pt2->root = arena_string_n(&pt2->arena, first, slash ? (size_t)(slash - first) : 0);
    if (slash && entry(pt2, "archive_format")) return FERRY_OK;
    return error_set(error, FERRY_BAD_FORMAT, pt2->path,
                     "expected a torch.export program, found a zip archive without archive_format "
                     "(programs saved by torch before 2.7 have another layout: load and save them "
                     "again with a newer torch)");
}

/* The only program of the archive, or the one called "model". */
static ferry_status find_program(Pt2 *pt2, const ZipEntry **out, const char **name,
                                 ferry_error *error) {
    size_t found = 0;
    const char *prefix = arena_format(&pt2->arena, "%s/models/", pt2->root);
    size_t length = strlen(prefix);
    *out = entry(pt2, "models/model.json");
    *name = "model";
    for (size_t i = 0; (!*out || found) && i < pt2->zip.count; i++) {
        const ZipEntry *candidate = &pt2->zip.entries[i];
        size_t end = strlen(candidate->name);
        if (strncmp(candidate->name, prefix, length) != 0 || end < length + 5) continue;
        if (strcmp(candidate->name + end - 5, ".json") != 0 || found++) continue;
        *out = candidate;
        *name = arena_string_n(&pt2->arena, candidate->name + length, end - length - 5);
    }
    if (*out && found <= 1) return FERRY_OK;
    return error_set(error, FERRY_UNSUPPORTED, pt2->path,
                     "expected one program in models/, found %zu", found);
}

/* About how much memory a parsed document takes. */
static uint64_t parsed_size(const unsigned char *bytes, uint64_t length) {
    enum { OBJECT = 256, ARRAY = 128, VALUE = 64 };
    uint64_t size = 0;
    for (uint64_t i = 0; i < length; i++)
        size += bytes[i] == '{' ? OBJECT : bytes[i] == '[' ? ARRAY : bytes[i] == ',' ? VALUE : 0;
    return size;
}

/* A stored document is as large as the file that it comes in; a compressed one could be anything. */
static ferry_status read_json(Pt2 *pt2, const ZipEntry *from, const Doc **out, ferry_error *error) {
    const unsigned char *bytes = NULL;
    const char *where = arena_format(&pt2->arena, "%s: %s", pt2->path, from->name);
    bool large = from->deflated && from->size > MAX_INFLATED;
    if (!large) TRY(zip_bytes(&pt2->zip, from, &pt2->arena, &bytes, error));
    if (large || (from->deflated && parsed_size(bytes, from->size) > MAX_PARSED)) {
        return error_set(
            error, FERRY_UNSUPPORTED, where,
            "expected a document of moderate size, found one that expands from %" PRIu64
            " to %" PRIu64 " bytes: save the program without compression",
            from->packed, from->size);
    }
    TRY(doc_parse(where, bytes, from->size, &pt2->arena, out, error));
    if (doc_is_object(*out)) return FERRY_OK;
    return error_set(error, FERRY_BAD_FORMAT, where, "expected a JSON object, found %s",
                     doc_kind(*out));
}

static ferry_status check_version(const Pt2 *pt2, ferry_error *error) {
    const Doc *version = doc_get(pt2->json, "schema_version");
    const Doc *major = doc_get(version, "major");
    if (doc_is_integer(major) && (doc_integer(major) == SCHEMA_MAJOR || doc_integer(major) == 0)) {
        return FERRY_OK;
    }
    return error_set(error, FERRY_UNSUPPORTED, pt2->path,
                     "expected a program of schema version %d, found %" PRId64
                     ": load it with the torch that saved it and save it with torch 2.9 or later",
                     SCHEMA_MAJOR, (int64_t)doc_integer(major));
}

static ferry_status read_payload(Pt2 *pt2, const char *kind, const char *name, const Doc **out,
                                 ferry_error *error) {
    const char *path = arena_format(&pt2->arena, "data/%s/%s_%s_config.json", kind, name, kind);
    const ZipEntry *found = entry(pt2, path);
    const Doc *document;
    if (!found) return FERRY_OK;
    TRY(read_json(pt2, found, &document, error));
    *out = doc_get(document, "config");
    return FERRY_OK;
}

static ferry_status read_archive(Pt2 *pt2, ferry_error *error) {
    const ZipEntry *program;
    const char *name;
    TRY(file_map(pt2->path, &pt2->arena, &pt2->file, error));
    TRY(zip_read(pt2->path, pt2->file.bytes, pt2->file.size, &pt2->arena, &pt2->zip, error));
    TRY(find_root(pt2, error));
    TRY(find_program(pt2, &program, &name, error));
    TRY(read_json(pt2, program, &pt2->json, error));
    TRY(check_version(pt2, error));
    TRY(read_payload(pt2, "weights", name, &pt2->weights, error));
    return read_payload(pt2, "constants", name, &pt2->constants, error);
}

ferry_status pt2_open(const char *path, Pt2 **out, ferry_error *error) {
    Pt2 *pt2 = calloc(1, sizeof *pt2);
    *out = NULL;
    if (!pt2) return error_memory(error, path, sizeof *pt2);
    pt2->path = arena_string(&pt2->arena, path);
    ferry_status status = read_archive(pt2, error);
    if (status == FERRY_OK && pt2->arena.failed) status = error_memory(error, path, 0);
    if (status == FERRY_OK)
        *out = pt2;
    else
        pt2_close(pt2);
    return status;
}

void pt2_close(Pt2 *pt2) {
    if (!pt2) return;
    zip_free(&pt2->zip);
    file_unmap(&pt2->file);
    arena_free(&pt2->arena);
    free(pt2);
}

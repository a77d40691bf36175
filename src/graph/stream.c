#include "graph/stream.h"
#include "base/error.h"
#include "base/vec.h"

#include <pthread.h>
#include <stdlib.h>

typedef struct Chunk {
    size_t item;
    uint64_t first, count; /* elements */
} Chunk;

typedef struct Stream {
    const StreamItem *items;
    OutputFile *file;
    StreamProgress progress;
    void *context;
    VEC(Chunk) chunks;
    size_t largest; /* bytes of a chunk */
    uint64_t total;

    pthread_mutex_t lock;         /* of what follows */
    VEC(unsigned char *) buffers; /* not in use */
    size_t *unfinished;           /* chunks, of each item */
    uint64_t done;
    ferry_status status;
    ferry_error *error;
} Stream;

/* A buffer for one chunk; NULL when the work is over. */
static unsigned char *take_buffer(Stream *stream) {
    unsigned char *buffer = NULL;
    pthread_mutex_lock(&stream->lock);
    if (stream->status == FERRY_OK) {
        buffer = stream->buffers.count ? stream->buffers.items[--stream->buffers.count]
                                       : malloc(stream->largest);
        if (!buffer) {
            stream->status = error_memory(stream->error, stream->file->path, stream->largest);
        }
    }
    pthread_mutex_unlock(&stream->lock);
    return buffer;
}

/* Account for a written chunk; true when it was the last one of its item. */
static bool finish_chunk(Stream *stream, const Chunk *chunk, unsigned char *buffer, uint64_t bytes,
                         ferry_status status, const ferry_error *problem) {
    pthread_mutex_lock(&stream->lock);
    VEC_PUSH(&stream->buffers, buffer);
    bool last = --stream->unfinished[chunk->item] == 0;
    stream->done += bytes;
    if (stream->status == FERRY_OK && status != FERRY_OK) {
        stream->status = status;
        if (stream->error) *stream->error = *problem;
    }
    if (stream->status == FERRY_OK && stream->progress &&
        stream->progress(stream->context, stream->done, stream->total)) {
        stream->status = error_set(stream->error, FERRY_CANCELLED, stream->file->path,
                                   "interrupted; nothing was written");
    }
    pthread_mutex_unlock(&stream->lock);
    return last;
}

static void write_chunk(void *context, size_t index) {
    Stream *stream = context;
    const Chunk *chunk = &stream->chunks.items[index];
    const StreamItem *item = &stream->items[chunk->item];
    unsigned char *buffer = take_buffer(stream);
    if (!buffer) return;
    size_t size = ferry_dtype_size(item->recipe->dtype), bytes = (size_t)chunk->count * size;
    const unsigned char *source = buffer;
    const MappedFile *file;
    uint64_t offset;
    if (recipe_is_verbatim(item->recipe, &file, &offset))
        source = file->bytes + offset + chunk->first * size;
    else
        recipe_read(item->recipe, chunk->first, chunk->count, buffer);
    ferry_error problem;
    ferry_status status =
        output_write(stream->file, item->offset + chunk->first * size, source, bytes, &problem);
    recipe_forget(item->recipe, chunk->first, chunk->count);
    if (finish_chunk(stream, chunk, buffer, bytes, status, &problem)) {
        recipe_forget(item->recipe, 0, recipe_count(item->recipe));
    }
}

static void plan(Stream *stream, size_t item) {
    const Recipe *recipe = stream->items[item].recipe;
    uint64_t elements = recipe_count(recipe), step = recipe_chunk(recipe);
    for (uint64_t first = 0; first < elements; first += step) {
        uint64_t count = elements - first < step ? elements - first : step;
        size_t bytes = (size_t)count * ferry_dtype_size(recipe->dtype);
        VEC_PUSH(&stream->chunks, (Chunk){item, first, count});
        if (bytes > stream->largest) stream->largest = bytes;
        stream->unfinished[item]++;
    }
    stream->total += recipe_bytes_size(recipe);
}

ferry_status stream_write(const StreamItem *items, size_t count, Pool *pool, OutputFile *file,
                          StreamProgress progress, void *context, ferry_error *error) {
    Stream stream = {.items = items,
                     .file = file,
                     .progress = progress,
                     .context = context,
                     .lock = PTHREAD_MUTEX_INITIALIZER,
                     .error = error};
    stream.unfinished = calloc(count + 1, sizeof *stream.unfinished);
    if (!stream.unfinished) return error_memory(error, file->path, count);
    for (size_t i = 0; i < count; i++) plan(&stream, i);
    if (stream.chunks.failed)
        stream.status = error_memory(error, file->path, 0);
    else
        pool_run(pool, stream.chunks.count, write_chunk, &stream);
    for (size_t i = 0; i < stream.buffers.count; i++) free(stream.buffers.items[i]);
    VEC_FREE(&stream.buffers);
    VEC_FREE(&stream.chunks);
    free(stream.unfinished);
    return stream.status;
}

/* Text columns as data frames lend them: the C stream interface of Arrow, string views, nothing copied. */
#ifndef MANYHANDS_ARROW_H
#define MANYHANDS_ARROW_H

#include "_views.h"

#include <stdlib.h>

/* The layout that the interface lays down for every library. */
typedef struct ArrowSchema {
    const char *format, *name, *metadata;
    int64_t flags, n_children;
    struct ArrowSchema **children, *dictionary;
    void (*release)(struct ArrowSchema *);
    void *private_data;
} ArrowSchema;

typedef struct ArrowArray {
    int64_t length, null_count, offset, n_buffers, n_children;
    const void **buffers;
    struct ArrowArray **children, *dictionary;
    void (*release)(struct ArrowArray *);
    void *private_data;
} ArrowArray;

typedef struct ArrowArrayStream {
    int (*get_schema)(struct ArrowArrayStream *, ArrowSchema *);
    int (*get_next)(struct ArrowArrayStream *, ArrowArray *);
    const char *(*get_last_error)(struct ArrowArrayStream *);
    void (*release)(struct ArrowArrayStream *);
    void *private_data;
} ArrowArrayStream;

/* A cell: up to 12 bytes stand in the view itself, padded with zeros; of longer ones, where they stand. */
#define INLINE_BYTES 12
typedef union {
    struct {
        uint32_t size;
        char bytes[INLINE_BYTES];
    } here;
    struct {
        uint32_t size;
        char prefix[4];
        uint32_t buffer, offset;
    } there;
} View;

/* A text of the column, where it stands. */
typedef struct {
    const char *at;
    uint32_t size;
} Text;

typedef struct {
    ArrowArray *chunk;
    Py_ssize_t n, room;
} Chunks;

typedef enum { CODED, OTHER_LAYOUT, OUT_OF_MEMORY, BROKEN, TOO_MANY } Outcome;

/* The text of a view; -1 if it would lie outside its buffer. */
static inline int find_text(const View *view, const ArrowArray *chunk, Text *text)
{
    *text = (Text){view->here.bytes, view->here.size};
    if (text->size <= INLINE_BYTES)
        return 0;
    int64_t n_buffers = chunk->n_buffers - 3; /* beside them: validity, views, and the sizes of the others */
    const int64_t *size = chunk->buffers[chunk->n_buffers - 1];
    if (view->there.buffer >= n_buffers || (int64_t)view->there.offset + text->size > size[view->there.buffer])
        return -1;
    text->at = (const char *)chunk->buffers[2 + view->there.buffer] + view->there.offset;
    return 0;
}

static inline int is_null(const ArrowArray *chunk, int64_t i)
{
    const uint8_t *valid = chunk->buffers[0];
    return valid && !(valid[(chunk->offset + i) >> 3] >> ((chunk->offset + i) & 7) & 1);
}

static inline void release_chunks(Chunks *chunks)
{
    for (Py_ssize_t c = 0; c < chunks->n; c++)
        if (chunks->chunk[c].release)
            chunks->chunk[c].release(&chunks->chunk[c]);
    free(chunks->chunk);
}

/* All chunks of a stream of string views that together have `n_rows` cells; they live until released. */
static inline Outcome take_chunks(ArrowArrayStream *stream, Py_ssize_t n_rows, Chunks *chunks)
{
    ArrowSchema schema = {0};
    if (!stream->release || stream->get_schema(stream, &schema))
        return BROKEN;
    int is_text = schema.format && !strcmp(schema.format, "vu") && !schema.dictionary;
    if (schema.release)
        schema.release(&schema);
    if (!is_text)
        return OTHER_LAYOUT;
    for (Py_ssize_t left = n_rows;;) {
        if (chunks->n == chunks->room) {
            Py_ssize_t room = 2 * chunks->room + 16;
            ArrowArray *more = realloc(chunks->chunk, (size_t)room * sizeof *more);
            if (!more)
                return OUT_OF_MEMORY;
            chunks->chunk = more;
            chunks->room = room;
        }
        ArrowArray *chunk = &chunks->chunk[chunks->n];
        memset(chunk, 0, sizeof *chunk);
        if (stream->get_next(stream, chunk))
            return BROKEN;
        if (!chunk->release)
            return left ? BROKEN : CODED; /* the end of the stream */
        chunks->n++;
        left -= (Py_ssize_t)chunk->length;
        if (chunk->n_buffers < 3)
            return BROKEN;
    }
}

#endif

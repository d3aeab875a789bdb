/* Texts in the order of their bytes, which in UTF-8 is that of code points, eight bytes at a time. */
#ifndef MANYHANDS_TEXT_ORDER_H
#define MANYHANDS_TEXT_ORDER_H

#include "_arrow.h"

/* One text on its way to its place, with the eight bytes that are being looked at, the first of them highest. */
typedef struct {
    uint64_t key;
    const Text *text;
} Entry;

typedef struct {
    Entry *spare; /* as many as there are texts */
    Py_ssize_t count[8][256];
} Sorter;

#define FEW 48    /* at most this many texts are sorted by comparisons */
#define DEEPEST 64 /* and texts that are equal in this many steps of eight bytes */

static int compare_entries(const void *a, const void *b)
{
    const Text *one = ((const Entry *)a)->text, *other = ((const Entry *)b)->text;
    int order = memcmp(one->at, other->at, one->size < other->size ? one->size : other->size);
    return order ? order : (one->size > other->size) - (one->size < other->size);
}

/* The eight bytes of a text from `from` on, with zeros after its end. */
static inline uint64_t key_of(const Text *text, uint32_t from)
{
    uint64_t key = 0;
    for (uint32_t i = from; i < from + 8; i++)
        key = key << 8 | (i < text->size ? (unsigned char)text->at[i] : 0);
    return key;
}

/* Sort by the keys, byte by byte from the last; bytes that are the same in all are passed over. */
static inline void sort_by_key(Sorter *sorter, Entry *entry, Py_ssize_t n)
{
    memset(sorter->count, 0, sizeof sorter->count);
    for (Py_ssize_t i = 0; i < n; i++)
        for (int byte = 0; byte < 8; byte++)
            sorter->count[byte][entry[i].key >> 8 * byte & 255]++;
    Entry *from = entry, *to = sorter->spare;
    for (int byte = 0; byte < 8; byte++) {
        Py_ssize_t *count = sorter->count[byte], before = 0;
        if (count[entry[0].key >> 8 * byte & 255] == n)
            continue;
        for (int value = 0; value < 256; value++) {
            Py_ssize_t here = count[value];
            count[value] = before;
            before += here;
        }
        for (Py_ssize_t i = 0; i < n; i++)
            to[count[from[i].key >> 8 * byte & 255]++] = from[i];
        Entry *swap = from;
        from = to;
        to = swap;
    }
    if (from != entry)
        memcpy(entry, from, (size_t)n * sizeof *entry);
}

/* Sort texts that agree in their first 8 * depth bytes. */
static inline void sort_texts(Sorter *sorter, Entry *entry, Py_ssize_t n, uint32_t depth)
{
    if (n < FEW || depth >= DEEPEST) {
        qsort(entry, (size_t)n, sizeof *entry, compare_entries);
        return;
    }
    for (Py_ssize_t i = 0; i < n; i++)
        entry[i].key = key_of(entry[i].text, 8 * depth);
    sort_by_key(sorter, entry, n);
    for (Py_ssize_t begin = 0, end; begin < n; begin = end) {
        for (end = begin + 1; end < n && entry[end].key == entry[begin].key;)
            end++;
        if (end - begin > 1)
            sort_texts(sorter, entry + begin, end - begin, depth + 1);
    }
}

/* The rows of a column without nulls in the order of their texts. */
static inline Outcome order_chunks(const Chunks *chunks, Py_ssize_t n, int32_t *order)
{
    size_t room = n ? (size_t)n : 1;
    Text *text = malloc(room * sizeof *text);
    Entry *entry = malloc(room * sizeof *entry);
    Sorter *sorter = malloc(sizeof *sorter);
    Outcome outcome = OUT_OF_MEMORY;
    if (text && entry && sorter && (sorter->spare = malloc(room * sizeof *entry))) {
        Py_ssize_t row = 0;
        outcome = CODED;
        for (Py_ssize_t c = 0; c < chunks->n; c++) {
            const ArrowArray *chunk = &chunks->chunk[c];
            const View *view = (const View *)chunk->buffers[1] + chunk->offset;
            for (int64_t i = 0; i < chunk->length; i++, row++) {
                if (is_null(chunk, i) || find_text(&view[i], chunk, &text[row]) < 0)
                    outcome = BROKEN;
                entry[row].text = &text[row];
            }
        }
        if (outcome == CODED) {
            sort_texts(sorter, entry, n, 0);
            for (Py_ssize_t i = 0; i < n; i++)
                order[i] = (int32_t)(entry[i].text - text);
        }
        free(sorter->spare);
    }
    free(sorter);
    free(entry);
    free(text);
    return outcome;
}

#endif

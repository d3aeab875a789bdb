/* Each distinct text of a column gets the number of its first appearance.
 *
 * Texts are compared byte by byte: what the hash does decides about speed, and about nothing else.
 */
#ifndef MANYHANDS_TEXT_CODES_H
#define MANYHANDS_TEXT_CODES_H

#include "_arrow.h"

/* A text of the table: most fit in, and are then one access to memory away; of longer ones, where they stand. */
typedef struct {
    uint32_t size;
    char bytes[28];
} Known;

typedef struct {
    uint32_t hash;
    int32_t code; /* -1: free */
} Slot;

typedef struct {
    Slot *slot;
    Known *known; /* the text of each code */
    uint64_t mask; /* slots are a power of two, and at least half of them stay free */
    Py_ssize_t n, room;
    uint64_t seed;
} Table;

static inline uint64_t load_8(const char *at)
{
    uint64_t value;
    memcpy(&value, at, 8);
    return value;
}

/* All bits of the product count, so that without the seed it is hard to say which texts share a hash. */
static inline uint64_t mix(uint64_t state, uint64_t value, uint64_t seed)
{
#ifdef __SIZEOF_INT128__
    __extension__ unsigned __int128 product = (unsigned __int128)(state ^ value) * seed;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
#else
    state = (state ^ value) * seed;
    return state ^ state >> 32;
#endif
}

/* With seed 0 all hashes are 0. */
static inline uint32_t hash_text(Text text, uint64_t seed)
{
    uint64_t state;
    if (text.size <= INLINE_BYTES) { /* with its size and padding it is a whole view */
        state = mix(seed, load_8(text.at - 4), seed);
        state = mix(state, load_8(text.at + 4), seed);
    } else {
        state = mix(seed, text.size, seed);
        for (uint32_t i = 0; i + 8 < text.size; i += 8)
            state = mix(state, load_8(text.at + i), seed);
        state = mix(state, load_8(text.at + text.size - 8), seed);
    }
    return (uint32_t)(state * seed >> 32);
}

static inline const char *bytes_of(const Known *known)
{
    const char *at = known->bytes;
    if (known->size > sizeof known->bytes)
        memcpy(&at, known->bytes, sizeof at);
    return at;
}

static inline void get_to_know(Known *known, Text text)
{
    known->size = text.size;
    if (text.size > sizeof known->bytes)
        memcpy(known->bytes, &text.at, sizeof text.at);
    else
        memcpy(known->bytes, text.at, text.size);
}

static inline int is_same(const Known *known, Text text)
{
    return known->size == text.size && !memcmp(bytes_of(known), text.at, text.size);
}

/* Twice as many slots; the texts stay where they are. */
static inline Outcome widen(Table *table)
{
    uint64_t mask = 2 * table->mask + 1;
    Slot *slot = malloc((mask + 1) * sizeof *slot);
    Known *known = realloc(table->known, (mask + 1) / 2 * sizeof *known);
    table->known = known ? known : table->known;
    if (!slot || !known) {
        free(slot);
        return OUT_OF_MEMORY;
    }
    memset(slot, 0xff, (mask + 1) * sizeof *slot);
    for (uint64_t i = 0; table->slot && i <= table->mask; i++)
        if (table->slot[i].code >= 0) {
            uint64_t at = table->slot[i].hash & mask;
            while (slot[at].code >= 0)
                at = (at + 1) & mask;
            slot[at] = table->slot[i];
        }
    free(table->slot);
    table->slot = slot;
    table->mask = mask;
    table->room = (Py_ssize_t)((mask + 1) / 2);
    return CODED;
}

/* The code of a text, a new one if it has none yet; there is room for it. */
static inline int32_t code_of(Table *table, Text text, uint32_t hash)
{
    uint64_t at = hash & table->mask;
    for (; table->slot[at].code >= 0; at = (at + 1) & table->mask)
        if (table->slot[at].hash == hash && is_same(&table->known[table->slot[at].code], text))
            return table->slot[at].code;
    table->slot[at] = (Slot){hash, (int32_t)table->n};
    get_to_know(&table->known[table->n], text);
    return (int32_t)table->n++;
}

#define TOGETHER 64 /* cells on their way at a time, so that the waits for memory overlap */

/* Codes of up to TOGETHER texts; `row` is the number of the first one in the column. Short ones stand in views. */
static inline Outcome code_texts(Table *table, const Text *text, int n, int32_t *code, int64_t row, int64_t *first)
{
    uint32_t hash[TOGETHER];
    while (table->n + n > table->room) {
        if (table->n > INT32_MAX - TOGETHER)
            return TOO_MANY;
        if (widen(table) != CODED)
            return OUT_OF_MEMORY;
    }
    for (int i = 0; i < n; i++) {
        hash[i] = hash_text(text[i], table->seed);
        __builtin_prefetch(&table->slot[hash[i] & table->mask]);
    }
    for (int i = 0; i < n; i++) {
        int32_t likely = table->slot[hash[i] & table->mask].code;
        if (likely >= 0)
            __builtin_prefetch(&table->known[likely]);
    }
    for (int i = 0; i < n; i++) {
        Py_ssize_t before = table->n;
        code[i] = code_of(table, text[i], hash[i]);
        if (code[i] == before)
            first[before] = row + i;
    }
    return CODED;
}

/* Codes of `n` cells from `view` on, all of them texts. */
static inline Outcome code_some(Table *table, const View *view, int n, const ArrowArray *chunk, int32_t *code,
                                int64_t row, int64_t *first)
{
    Text text[TOGETHER];
    for (int i = 0; i < n; i++)
        if (find_text(&view[i], chunk, &text[i]) < 0)
            return BROKEN;
    return code_texts(table, text, n, code, row, first);
}

/* Codes of texts that stand one after the other in `data`; the lengths of all must add up to its size. */
static inline Outcome code_joined(Table *table, const char *data, int64_t size, const int64_t *length, Py_ssize_t n_rows,
                                  int32_t *code, int64_t *first)
{
    View view[TOGETHER];
    Text text[TOGETHER];
    for (Py_ssize_t row = 0; row < n_rows; row += TOGETHER) {
        int n = n_rows - row < TOGETHER ? (int)(n_rows - row) : TOGETHER;
        for (int i = 0; i < n; i++) {
            int64_t here = length[row + i];
            if (here < 0 || here > size || here > UINT32_MAX)
                return BROKEN;
            text[i] = (Text){data, (uint32_t)here};
            if (here <= INLINE_BYTES) {
                memset(&view[i], 0, sizeof view[i]);
                view[i].here.size = (uint32_t)here;
                memcpy(view[i].here.bytes, data, (size_t)here);
                text[i].at = view[i].here.bytes;
            }
            data += here;
            size -= here;
        }
        Outcome outcome = code_texts(table, text, n, code + row, row, first);
        if (outcome != CODED)
            return outcome;
    }
    return size ? BROKEN : CODED;
}

/* Codes of a whole column, -1 where a cell is null, and the first row of each text. */
static inline Outcome code_chunks(Table *table, const Chunks *chunks, int32_t *code, int64_t *first)
{
    int64_t row = 0;
    for (Py_ssize_t c = 0; c < chunks->n; c++) {
        const ArrowArray *chunk = &chunks->chunk[c];
        const View *view = (const View *)chunk->buffers[1] + chunk->offset;
        for (int64_t i = 0; i < chunk->length;) {
            int n = 0;
            while (n < TOGETHER && i + n < chunk->length && !is_null(chunk, i + n))
                n++;
            Outcome outcome = code_some(table, view + i, n, chunk, code + row + i, row + i, first);
            if (outcome != CODED)
                return outcome;
            i += n;
            while (i < chunk->length && is_null(chunk, i))
                code[row + i++] = -1;
        }
        row += chunk->length;
    }
    return CODED;
}

#endif

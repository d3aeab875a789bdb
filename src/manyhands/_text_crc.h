/* CRC-32 of texts, as zlib computes it: the order of items in shards depends on it, on every engine. */
#ifndef MANYHANDS_TEXT_CRC_H
#define MANYHANDS_TEXT_CRC_H

#include "_arrow.h"

#define CRC_POLYNOMIAL 0xedb88320u /* of IEEE 802.3, the lowest bit first */

typedef uint32_t CrcTable[8][256]; /* [k][b]: what byte b does to the remainder, k bytes later */

static inline void fill_crc_table(CrcTable table)
{
    for (uint32_t byte = 0; byte < 256; byte++) {
        uint32_t rest = byte;
        for (int bit = 0; bit < 8; bit++)
            rest = rest >> 1 ^ (rest & 1 ? CRC_POLYNOMIAL : 0);
        table[0][byte] = rest;
    }
    for (uint32_t byte = 0; byte < 256; byte++)
        for (int k = 1; k < 8; k++)
            table[k][byte] = table[k - 1][byte] >> 8 ^ table[0][table[k - 1][byte] & 255];
}

/* Eight bytes at a time; each is looked up alone, so that the byte order of the machine does not matter. */
static inline uint32_t crc_of(CrcTable table, Text text)
{
    const unsigned char *at = (const unsigned char *)text.at, *end = at + text.size;
    uint32_t rest = 0xffffffffu;
    for (; end - at >= 8; at += 8)
        rest = table[7][at[0] ^ (rest & 255)] ^ table[6][at[1] ^ (rest >> 8 & 255)] ^
               table[5][at[2] ^ (rest >> 16 & 255)] ^ table[4][at[3] ^ rest >> 24] ^ table[3][at[4]] ^
               table[2][at[5]] ^ table[1][at[6]] ^ table[0][at[7]];
    for (; at < end; at++)
        rest = rest >> 8 ^ table[0][*at ^ (rest & 255)];
    return ~rest;
}

/* The CRC-32 of every text of a column without nulls. */
static inline Outcome crc_chunks(const Chunks *chunks, uint32_t *crc)
{
    CrcTable table;
    fill_crc_table(table);
    for (Py_ssize_t c = 0; c < chunks->n; c++) {
        const ArrowArray *chunk = &chunks->chunk[c];
        const View *view = (const View *)chunk->buffers[1] + chunk->offset;
        for (int64_t i = 0; i < chunk->length; i++) {
            Text text;
            if (is_null(chunk, i) || find_text(&view[i], chunk, &text) < 0)
                return BROKEN;
            *crc++ = crc_of(table, text);
        }
    }
    return CODED;
}

#endif

/* Mutation fuzzer of the snapshot reader: snapshot_fuzz SEED COUNT FILE reads COUNT mutations of FILE, the same ones for
 * the same SEED. Meant for a build with sanitizers; aborts on a result that points outside its own tables. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "snapshot.h"

static uint64_t state;

static uint64_t below(uint64_t limit)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return limit > 0 ? (state * 0x2545f4914f6cdd1du >> 16) % limit : 0;
}

/* Instructions that the reader knows, and some that it must refuse. */
static const uint8_t INSTRUCTIONS[] = {
    '.', 0x80, 0x95, 'N', 0x88, 0x89, '(', '0', '1', '2', 'J', 'K', 'M', 0x8a, 0x8b, 'G', 'X', 0x8c, 0x8d, 'U', 'T',
    'C', 'B', 0x8e, 0x96, ']', '}', ')', 'l', 'd', 't', 0x85, 0x86, 0x87, 'a', 'e', 's', 'u', 'h', 'j', 'q', 'r', 0x94,
    'c', 0x93, 'R', 'i', 'P', 'I',
};

struct bytes {
    uint8_t *at;
    size_t length;
    size_t capacity;
};

static void replace(struct bytes *b, size_t at, size_t old, const uint8_t *with, size_t length)
{
    if (b->length - old + length > b->capacity)
        return;
    memmove(b->at + at + length, b->at + at + old, b->length - at - old);
    memcpy(b->at + at, with, length);
    b->length += length - old;
}

static void mutate(struct bytes *b)
{
    uint8_t piece[64];
    size_t at = below(b->length + 1);
    size_t left = b->length - at;
    switch (below(6)) {
    case 0: /* change a byte */
        if (left > 0)
            b->at[at] ^= (uint8_t)(1u << below(8));
        break;
    case 1: /* put an instruction in */
        piece[0] = INSTRUCTIONS[below(sizeof INSTRUCTIONS)];
        replace(b, at, below(2) && left > 0 ? 1 : 0, piece, 1);
        break;
    case 2: /* refer to something that was read before */
        piece[0] = 'h';
        piece[1] = (uint8_t)below(256);
        replace(b, at, left >= 2 ? 2 * below(2) : 0, piece, 2);
        break;
    case 3: { /* copy a part elsewhere */
        size_t from = below(b->length + 1);
        size_t length = below(sizeof piece);
        if (length > b->length - from)
            length = b->length - from;
        memcpy(piece, b->at + from, length);
        replace(b, at, 0, piece, length);
        break;
    }
    case 4: /* leave a part out */
        replace(b, at, left > 0 ? below(left < 40 ? left : 40) : 0, piece, 0);
        break;
    default: /* an extreme length or number */
        for (size_t i = 0; i < 8; i++)
            if (at + i < b->length)
                b->at[at + i] = below(2) ? 0xff : 0;
        break;
    }
    if (below(200) == 0)
        b->length = below(b->length + 1);
}

static void expect(int condition, const char *what)
{
    if (!condition) {
        fprintf(stderr, "wrong result: %s\n", what);
        abort();
    }
}

static void check_index(int32_t index, uint64_t count, const char *what)
{
    expect(index >= -1 && (index < 0 || (uint64_t)index < count), what);
}

static void check(const struct snapshot *out)
{
    for (uint64_t i = 0; i < out->row_count; i++) {
        expect(out->action[i] <= 10, "action");
        check_index(out->pool[i], out->pool_count, "pool");
        check_index(out->stack[i], out->stack_count, "stack");
        check_index(out->metadata[i], out->text_count, "metadata");
        check_index(out->compile_context[i], out->text_count, "compile context");
    }
    for (uint64_t i = 0; i < out->device_count; i++) {
        const struct snapshot_device *device = &out->devices[i];
        for (uint64_t k = 0; k < device->count; k++)
            expect((device->rows != NULL ? device->rows[k] : device->start + k) < out->row_count, "row");
    }
    for (uint64_t i = 0; i < out->frame_count; i++) {
        expect((uint64_t)out->frame_filename[i] < out->text_count, "filename");
        expect((uint64_t)out->frame_name[i] < out->text_count, "name");
    }
    uint64_t end = 0;
    for (uint64_t i = 0; i < out->stack_count; i++) {
        expect(out->stack_end[i] > end, "stack end");
        for (; end < out->stack_end[i]; end++)
            expect((uint64_t)out->stack_frames[end] < out->frame_count, "frame");
    }
}

int main(int argc, char **argv)
{
    if (argc != 4) {
        fprintf(stderr, "usage: snapshot_fuzz SEED COUNT FILE\n");
        return 2;
    }
    state = strtoull(argv[1], NULL, 10) * 0x9e3779b97f4a7c15u + 1;
    uint64_t count = strtoull(argv[2], NULL, 10);
    FILE *file = fopen(argv[3], "rb");
    uint8_t *seed = malloc(1 << 20);
    if (file == NULL || seed == NULL) {
        perror(argv[3]);
        return 2;
    }
    size_t length = fread(seed, 1, 1 << 20, file);
    fclose(file);
    uint64_t seen[9] = { 0 };
    for (uint64_t i = 0; i < count; i++) {
        struct bytes b = { malloc(length + 4096), length, length + 4096 };
        memcpy(b.at, seed, length);
        for (uint64_t n = 1 + below(4); n > 0; n--)
            mutate(&b);
        /* An exact copy: reading one byte too many is then an error that the sanitizer sees. */
        uint8_t *exact = malloc(b.length > 0 ? b.length : 1);
        memcpy(exact, b.at, b.length);
        struct snapshot out;
        uint32_t status = snapshot_read(exact, b.length, 1 << 24, &out);
        expect(status <= SNAPSHOT_NO_SNAPSHOT, "status");
        seen[status]++;
        if (status == SNAPSHOT_OK)
            check(&out);
        snapshot_free(&out);
        free(exact);
        free(b.at);
    }
    free(seed);
    for (int i = 0; i < 9; i++)
        printf("%s%" PRIu64, i > 0 ? " " : "status counts: ", seen[i]);
    printf("\n");
    return 0;
}

#include "values.h"

#include "tree.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* A copy of more is not kept: what programs read back to decide something is smaller. */
enum { MOST_BYTES_EACH = 65536, MOST_EXTENTS = 16384 };
static const uint64_t MOST_BYTES = 64 << 20;

/* Bytes of one range. Extents never overlap. */
struct extent {
    struct node place; /* key: address, tie: size */
    uint32_t pattern;  /* content of a fill */
    bool filled;
    unsigned char bytes[];
};

uint64_t values_epoch;

static struct {
    struct tree extents;
    uint64_t epoch, bytes;
    int count;
} table;

static uint64_t end_of(const struct extent *extent) {
    return extent->place.key + extent->place.tie;
}

static uint64_t stored(const struct extent *extent) {
    return extent->filled ? 0 : extent->place.tie;
}

static void strike(struct extent *extent) {
    tree_remove(&table.extents, &extent->place);
    table.count--;
    table.bytes -= stored(extent);
    free(extent);
}

static void clear(void) {
    while (table.extents.root)
        strike(OWNER(table.extents.root, struct extent, place));
}

/* What was written before the last launch is forgotten at the first use after it. */
static void catch_up(void) {
    uint64_t epoch = __atomic_load_n(&values_epoch, __ATOMIC_RELAXED);
    if (epoch != table.epoch)
        clear();
    table.epoch = epoch;
}

static struct extent *enter_extent(uint64_t address, uint64_t size, bool filled) {
    if (table.count == MOST_EXTENTS || table.bytes > MOST_BYTES)
        clear();
    struct extent *extent = calloc(1, sizeof *extent + (filled ? 0 : size));
    if (!extent)
        return NULL;
    extent->place.key = address;
    extent->place.tie = size;
    extent->filled = filled;
    tree_insert(&table.extents, &extent->place);
    table.count++;
    table.bytes += stored(extent);
    return extent;
}

/* The extent that holds the byte at `address`, or NULL. */
static struct extent *around(uint64_t address) {
    struct extent *extent = OWNER(tree_floor(&table.extents, address), struct extent, place);
    return extent && address < end_of(extent) ? extent : NULL;
}

static void copy_out(const struct extent *extent, uint64_t from, unsigned char *to, uint64_t size) {
    if (!extent->filled) {
        memcpy(to, extent->bytes + (from - extent->place.key), size);
        return;
    }
    unsigned char pattern[4];
    memcpy(pattern, &extent->pattern, sizeof pattern);
    for (uint64_t i = 0; i < size; i++)
        to[i] = pattern[(from + i) & 3];
}

/* Enters the part [from, to) of an extent that is about to be struck. */
static void keep_part(const struct extent *extent, uint64_t from, uint64_t to) {
    struct extent *part = from < to ? enter_extent(from, to - from, extent->filled) : NULL;
    if (!part)
        return;
    part->pattern = extent->pattern;
    if (!part->filled)
        copy_out(extent, from, part->bytes, to - from);
}

/* Takes [begin, end) out of an extent, which stays in the tree with nothing in it until its parts are entered. */
static void cut(struct extent *extent, uint64_t begin, uint64_t end) {
    tree_remove(&table.extents, &extent->place);
    table.count--;
    table.bytes -= stored(extent);
    keep_part(extent, extent->place.key, begin);
    keep_part(extent, end, end_of(extent));
    free(extent);
}

void values_drop(uint64_t address, uint64_t size) {
    catch_up();
    uint64_t end = address + size;
    struct extent *extent = around(address);
    while (size && table.extents.root) {
        if (!extent)
            extent = OWNER(tree_ceiling(&table.extents, address, 0), struct extent, place);
        if (!extent || extent->place.key >= end)
            return;
        cut(extent, address, end);
        extent = NULL;
    }
}

void values_write(uint64_t to, const void *from, uint64_t size) {
    values_drop(to, size);
    struct extent *extent = size && size <= MOST_BYTES_EACH ? enter_extent(to, size, false) : NULL;
    if (extent)
        memcpy(extent->bytes, from, size);
}

void values_fill(uint64_t to, uint32_t pattern, uint64_t size) {
    values_drop(to, size);
    struct extent *extent = size ? enter_extent(to, size, true) : NULL;
    if (extent)
        extent->pattern = pattern;
}

bool values_read(uint64_t from, void *to, uint64_t size) {
    catch_up();
    unsigned char *out = to;
    while (size) {
        const struct extent *extent = around(from);
        if (!extent)
            return false;
        uint64_t part = end_of(extent) - from < size ? end_of(extent) - from : size;
        copy_out(extent, from, out, part);
        out += part;
        from += part;
        size -= part;
    }
    return true;
}

void values_copy(uint64_t to, uint64_t from, uint64_t size) {
    unsigned char *bytes = size <= MOST_BYTES_EACH ? malloc(size) : NULL;
    bool certain = bytes && size && values_read(from, bytes, size);
    if (certain)
        values_write(to, bytes, size);
    else
        values_drop(to, size);
    free(bytes);
}

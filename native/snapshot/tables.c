/* Tables of the snapshot reader: texts, frames, stacks and pools, each stored once and found by content. */
#include <stdlib.h>
#include <string.h>

#include "machine.h"

static uint64_t mix(uint64_t h)
{
    h ^= h >> 32;
    h *= 0x9e3779b97f4a7c15u;
    return h ^ h >> 29;
}

static uint64_t hash_bytes(const void *bytes, uint64_t length)
{
    const uint8_t *p = bytes;
    uint64_t h = mix(length + 1);
    for (; length >= 8; p += 8, length -= 8) {
        uint64_t word;
        memcpy(&word, p, 8);
        h = mix(h ^ word) + 1;
    }
    uint64_t tail = 0;
    for (uint64_t i = 0; i < length; i++)
        tail |= (uint64_t)p[i] << 8 * i;
    return mix(h ^ tail);
}

static void resize(struct machine *m, struct table *table)
{
    uint64_t slot_count = table->slot_count > 0 ? table->slot_count * 2 : 256;
    if (slot_count > (uint64_t)1 << 31)
        give_up(m, SNAPSHOT_NO_MEMORY);
    uint64_t bytes = slot_count * sizeof *table->slots + slot_count / 2 * sizeof *table->hashes;
    if (bytes > m->memory_left)
        give_up(m, SNAPSHOT_NO_MEMORY);
    m->memory_left -= bytes;
    uint64_t *hashes = realloc(table->hashes, slot_count / 2 * sizeof *hashes);
    if (hashes == NULL)
        give_up(m, SNAPSHOT_NO_MEMORY);
    table->hashes = hashes;
    uint32_t *slots = calloc(slot_count, sizeof *slots);
    if (slots == NULL)
        give_up(m, SNAPSHOT_NO_MEMORY);
    for (uint64_t i = 0; i < table->count; i++) {
        uint64_t at = hashes[i] & (slot_count - 1);
        while (slots[at] != 0)
            at = (at + 1) & (slot_count - 1);
        slots[at] = (uint32_t)(i + 1);
    }
    free(table->slots);
    table->slots = slots;
    table->slot_count = slot_count;
}

typedef bool (*same_fn)(const struct machine *m, uint64_t index, const void *key, uint64_t length);

/* Index of `key`, or NOTHING after a place for the next index was made for it: the caller then stores the content. */
static int32_t find(struct machine *m, struct table *table, const void *key, uint64_t length, same_fn same)
{
    if (table->count * 2 >= table->slot_count)
        resize(m, table);
    uint64_t hash = hash_bytes(key, length);
    uint64_t at = hash & (table->slot_count - 1);
    for (; table->slots[at] != 0; at = (at + 1) & (table->slot_count - 1)) {
        uint64_t index = table->slots[at] - 1;
        if (table->hashes[index] == hash && same(m, index, key, length))
            return (int32_t)index;
    }
    table->hashes[table->count++] = hash;
    table->slots[at] = (uint32_t)table->count;
    return NOTHING;
}

static uint64_t start_of(const struct array *ends, uint64_t index)
{
    return index > 0 ? ((const uint64_t *)ends->items)[index - 1] : 0;
}

static bool same_text(const struct machine *m, uint64_t index, const void *key, uint64_t length)
{
    uint64_t start = start_of(&m->text_end, index);
    return ((const uint64_t *)m->text_end.items)[index] - start == length
        && (length == 0 || memcmp((const char *)m->text_bytes.items + start, key, length) == 0);
}

int32_t text_index(struct machine *m, const uint8_t *bytes, uint64_t length)
{
    int32_t found = find(m, &m->texts, bytes, length, same_text);
    if (found != NOTHING)
        return found;
    grow(m, &m->text_bytes, length + 1);
    if (length > 0)
        memcpy((char *)m->text_bytes.items + m->text_bytes.count, bytes, length);
    m->text_bytes.count += length;
    APPEND(m, &m->text_end, uint64_t, m->text_bytes.count);
    return (int32_t)(m->text_end.count - 1);
}

int32_t string_index(struct machine *m, value v)
{
    if (tag_of(v) != TAG_STRING)
        return text_index(m, (const uint8_t *)"", 0);
    struct string *string = pointer_of(v);
    if (string->text == NOTHING)
        string->text = text_index(m, string->bytes, string->length);
    return string->text;
}

struct frame {
    int64_t line;
    int32_t filename;
    int32_t name;
};

static bool same_frame(const struct machine *m, uint64_t index, const void *key, uint64_t length)
{
    (void)length;
    const struct frame *frame = key;
    return ((const int64_t *)m->frame_line.items)[index] == frame->line
        && ((const int32_t *)m->frame_filename.items)[index] == frame->filename
        && ((const int32_t *)m->frame_name.items)[index] == frame->name;
}

int32_t frame_index(struct machine *m, int32_t filename, int64_t line, int32_t name)
{
    struct frame frame = { line, filename, name };
    int32_t found = find(m, &m->frames, &frame, sizeof frame, same_frame);
    if (found != NOTHING)
        return found;
    APPEND(m, &m->frame_line, int64_t, line);
    APPEND(m, &m->frame_filename, int32_t, filename);
    APPEND(m, &m->frame_name, int32_t, name);
    return (int32_t)(m->frame_line.count - 1);
}

static bool same_stack(const struct machine *m, uint64_t index, const void *key, uint64_t length)
{
    uint64_t start = start_of(&m->stack_end, index);
    uint64_t count = ((const uint64_t *)m->stack_end.items)[index] - start;
    return count * sizeof(int32_t) == length
        && memcmp((const int32_t *)m->stack_frames.items + start, key, length) == 0;
}

int32_t stack_index(struct machine *m, const int32_t *frames, uint64_t count)
{
    int32_t found = find(m, &m->stacks, frames, count * sizeof *frames, same_stack);
    if (found != NOTHING)
        return found;
    grow(m, &m->stack_frames, count);
    memcpy((int32_t *)m->stack_frames.items + m->stack_frames.count, frames, count * sizeof *frames);
    m->stack_frames.count += count;
    APPEND(m, &m->stack_end, uint64_t, m->stack_frames.count);
    return (int32_t)(m->stack_end.count - 1);
}

static bool same_pool(const struct machine *m, uint64_t index, const void *key, uint64_t length)
{
    return memcmp((const uint64_t *)m->pools.items + 2 * index, key, length) == 0;
}

int32_t pool_index(struct machine *m, uint64_t first, uint64_t second)
{
    uint64_t pair[2] = { first, second };
    int32_t found = find(m, &m->pool_table, pair, sizeof pair, same_pool);
    if (found != NOTHING)
        return found;
    APPEND(m, &m->pools, uint64_t, first);
    APPEND(m, &m->pools, uint64_t, second);
    return (int32_t)(m->pools.count / 2 - 1);
}

void free_table(struct table *table)
{
    free(table->slots);
    free(table->hashes);
}

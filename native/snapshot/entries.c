/* Trace entries become rows, lists of frames become stacks: the shapes that torch gives a snapshot. */
#include <string.h>

#include "machine.h"

value item_of(const struct object *dict, enum word key, bool *found)
{
    /* From the end: of repeated keys the last counts, as in a Python dict. */
    for (uint32_t i = dict->fate == FATE_OPEN ? dict->count : 0; i >= 2; i -= 2) {
        value k = dict->items[i - 2];
        if (tag_of(k) == TAG_STRING && ((const struct string *)pointer_of(k))->word == key) {
            *found = true;
            return dict->items[i - 1];
        }
    }
    *found = false;
    return VALUE_NONE;
}

bool is_entry(value v)
{
    if (tag_of(v) != TAG_DICT)
        return false;
    const struct object *dict = pointer_of(v);
    if (dict->fate == FATE_ROW)
        return true;
    bool found;
    value action = item_of(dict, WORD_ACTION, &found);
    return found && tag_of(action) == TAG_STRING;
}

bool integer_of(value v, bool *negative, uint64_t *bits)
{
    if (tag_of(v) == TAG_INT) {
        int64_t n = (int64_t)(v - TAG_INT) / 8;
        *negative = n < 0;
        *bits = (uint64_t)n;
        return true;
    }
    if (tag_of(v) != TAG_NUMBER)
        return false;
    const struct number *number = pointer_of(v);
    if (number->kind == NUMBER_FLOAT)
        return false;
    *negative = number->kind == NUMBER_SIGNED && number->as.i < 0;
    *bits = number->kind == NUMBER_SIGNED ? (uint64_t)number->as.i : number->as.u;
    return true;
}

/* Anything but an integer in these fields is for the slow reader to complain about. */
static uint64_t bits_of(struct machine *m, value v)
{
    bool negative;
    uint64_t bits;
    if (!integer_of(v, &negative, &bits))
        give_up(m, SNAPSHOT_UNSUPPORTED);
    return bits;
}

static int64_t signed_of(struct machine *m, value v)
{
    bool negative;
    uint64_t bits;
    if (!integer_of(v, &negative, &bits) || (!negative && bits > INT64_MAX))
        give_up(m, SNAPSHOT_UNSUPPORTED);
    return (int64_t)bits;
}

static int32_t pool_of(struct machine *m, value v)
{
    if (tag_of(v) == TAG_LIST)
        give_up(m, SNAPSHOT_UNSUPPORTED);
    if (tag_of(v) != TAG_TUPLE)
        return NOTHING;
    const struct object *pair = pointer_of(v);
    bool negative;
    uint64_t first, second;
    if (pair->count != 2 || !integer_of(pair->items[0], &negative, &first)
        || !integer_of(pair->items[1], &negative, &second))
        return NOTHING;
    return pool_index(m, first, second);
}

static int32_t text_of(struct machine *m, value v, enum word unless)
{
    if (tag_of(v) != TAG_STRING)
        return NOTHING;
    const struct string *string = pointer_of(v);
    if (string->length == 0 || (unless != WORD_OTHER && string->word == unless))
        return NOTHING;
    return string_index(m, v);
}

static int32_t frame_of(struct machine *m, value v)
{
    if (tag_of(v) != TAG_DICT)
        return frame_index(m, string_index(m, VALUE_NONE), 0, string_index(m, VALUE_NONE));
    struct object *dict = pointer_of(v);
    if (dict->fate == FATE_FRAME)
        return (int32_t)dict->index;
    if (dict->fate != FATE_OPEN)
        give_up(m, SNAPSHOT_UNSUPPORTED);
    bool found, negative;
    uint64_t bits = 0;
    value line = item_of(dict, WORD_LINE, &found);
    /* Code that torch.compile makes has no line; torch writes -1 as unsigned then. */
    if (integer_of(line, &negative, &bits) && !negative && bits > INT64_MAX)
        bits = 0;
    int32_t filename = string_index(m, item_of(dict, WORD_FILENAME, &found));
    int32_t name = string_index(m, item_of(dict, WORD_NAME, &found));
    drop_items(m, dict);
    dict->index = (uint64_t)frame_index(m, filename, (int64_t)bits, name);
    dict->fate = FATE_FRAME;
    return (int32_t)dict->index;
}

int32_t stack_of(struct machine *m, value v)
{
    if (tag_of(v) != TAG_LIST)
        return NOTHING;
    struct object *list = pointer_of(v);
    if (list->fate == FATE_STACK)
        return (int32_t)list->index;
    if (list->fate != FATE_OPEN)
        give_up(m, SNAPSHOT_UNSUPPORTED);
    m->scratch.count = 0;
    for (uint32_t i = 0; i < list->count; i++) {
        /* An entry in the place of a frame has become a row: no torch wrote that. */
        if (tag_of(list->items[i]) == TAG_ROW)
            give_up(m, SNAPSHOT_UNSUPPORTED);
        APPEND(m, &m->scratch, int32_t, frame_of(m, list->items[i]));
    }
    int32_t index = list->count == 0 ? NOTHING : stack_index(m, m->scratch.items, m->scratch.count);
    drop_items(m, list);
    list->index = (uint64_t)index;
    list->fate = FATE_STACK;
    return index;
}

struct entry {
    uint8_t action;
    bool has_device_free;
    value address, device_free, size, stream, time_us, pool, frames, metadata, compile_context;
};

static void set_field(struct entry *entry, enum word key, value v)
{
    switch (key) {
    case WORD_ACTION: {
        enum word word = tag_of(v) == TAG_STRING ? ((const struct string *)pointer_of(v))->word : WORD_OTHER;
        entry->action = word >= WORD_ALLOC && word <= WORD_ANNOTATE ? (uint8_t)(word - WORD_ALLOC) : ACTION_OTHER;
        break;
    }
    case WORD_ADDR: entry->address = v; break;
    case WORD_DEVICE_FREE: entry->device_free = v; entry->has_device_free = true; break;
    case WORD_SIZE: entry->size = v; break;
    case WORD_STREAM: entry->stream = v; break;
    case WORD_TIME_US: entry->time_us = v; break;
    case WORD_POOL_ID: entry->pool = v; break;
    case WORD_FRAMES: entry->frames = v; break;
    case WORD_USER_METADATA: entry->metadata = v; break;
    case WORD_COMPILE_CONTEXT: entry->compile_context = v; break;
    default: break;
    }
}

/* Where nothing was written: 0 for numbers, nothing for the rest. */
static struct entry read_entry(const struct object *dict)
{
    value zero = TAG_INT;
    struct entry entry = { ACTION_OTHER, false, zero, zero, zero, zero, zero,
                           VALUE_NONE, VALUE_NONE, VALUE_NONE, VALUE_NONE };
    for (uint32_t i = 0; i + 1 < dict->count; i += 2)
        if (tag_of(dict->items[i]) == TAG_STRING)
            set_field(&entry, ((const struct string *)pointer_of(dict->items[i]))->word, dict->items[i + 1]);
    return entry;
}

value entry_to_row(struct machine *m, value v)
{
    struct object *dict = pointer_of(v);
    if (dict->fate == FATE_ROW)
        return (value)dict->index << 3 | TAG_ROW;
    if (dict->fate != FATE_OPEN)
        give_up(m, SNAPSHOT_UNSUPPORTED);
    struct entry entry = read_entry(dict);
    bool of_device = entry.action == WORD_OOM - WORD_ALLOC && entry.has_device_free;
    uint64_t row = m->action.count;
    APPEND(m, &m->address, uint64_t, bits_of(m, of_device ? entry.device_free : entry.address));
    APPEND(m, &m->size, int64_t, signed_of(m, entry.size));
    APPEND(m, &m->stream, uint64_t, bits_of(m, entry.stream));
    APPEND(m, &m->time_us, int64_t, signed_of(m, entry.time_us));
    APPEND(m, &m->pool, int32_t, pool_of(m, entry.pool));
    APPEND(m, &m->call_stack, int32_t, stack_of(m, entry.frames));
    APPEND(m, &m->metadata, int32_t, text_of(m, entry.metadata, WORD_OTHER));
    APPEND(m, &m->compile_context, int32_t, text_of(m, entry.compile_context, WORD_NOT_AVAILABLE));
    APPEND(m, &m->action, uint8_t, entry.action);
    drop_items(m, dict);
    dict->index = row;
    dict->fate = FATE_ROW;
    return (value)row << 3 | TAG_ROW;
}

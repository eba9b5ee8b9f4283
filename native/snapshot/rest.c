/* The end of reading: which rows belong to which device, and everything that is not a row as JSON. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "machine.h"

/* Real snapshots nest five deep: root, segments, segment, blocks, block. */
#define DEPTH 16
/* Short references to long keys grow: a block of 30 bytes becomes 150. More than this is a bomb. */
#define GROWTH 16
#define LONGEST ((uint64_t)1 << 28)

static void put_bytes(struct machine *m, const void *bytes, uint64_t length)
{
    if (m->rest.count + length > m->bytes * GROWTH + 65536 || m->rest.count + length > LONGEST)
        give_up(m, SNAPSHOT_UNSUPPORTED);
    grow(m, &m->rest, length + 1);
    memcpy((char *)m->rest.items + m->rest.count, bytes, length);
    m->rest.count += length;
}

static void put_text(struct machine *m, const char *text) { put_bytes(m, text, strlen(text)); }

static void put_string(struct machine *m, const struct string *string)
{
    put_text(m, "\"");
    uint64_t start = 0;
    for (uint64_t i = 0; i < string->length; i++) {
        uint8_t c = string->bytes[i];
        if (c >= 0x20 && c != '"' && c != '\\')
            continue;
        char escape[8];
        snprintf(escape, sizeof escape, "\\u%04x", c);
        if (i > start)
            put_bytes(m, string->bytes + start, i - start);
        put_text(m, escape);
        start = i + 1;
    }
    if (string->length > start)
        put_bytes(m, string->bytes + start, string->length - start);
    put_text(m, "\"");
}

static void put_float(struct machine *m, double f)
{
    char text[40];
    if (isnan(f) || isinf(f)) {
        put_text(m, isnan(f) ? "NaN" : f > 0 ? "Infinity" : "-Infinity");
        return;
    }
    snprintf(text, sizeof text, "%.17g", f);
    /* The process may use a locale with a decimal comma; without a point the number would read as an integer. */
    char *comma = strchr(text, ',');
    if (comma != NULL)
        *comma = '.';
    put_text(m, text);
    if (strpbrk(text, ".e") == NULL)
        put_text(m, ".0");
}

static void put_scalar(struct machine *m, value v)
{
    bool negative;
    uint64_t bits;
    char text[32];
    if (integer_of(v, &negative, &bits)) {
        if (negative)
            snprintf(text, sizeof text, "%" PRId64, (int64_t)bits);
        else
            snprintf(text, sizeof text, "%" PRIu64, bits);
        put_text(m, text);
    } else if (tag_of(v) == TAG_NUMBER) {
        put_float(m, ((const struct number *)pointer_of(v))->as.f);
    } else if (tag_of(v) == TAG_STRING) {
        put_string(m, pointer_of(v));
    } else if (v == VALUE_NONE || v == VALUE_TRUE || v == VALUE_FALSE) {
        put_text(m, v == VALUE_NONE ? "null" : v == VALUE_TRUE ? "true" : "false");
    } else {
        give_up(m, SNAPSHOT_UNSUPPORTED);
    }
}

struct level {
    struct object *object;
    uint64_t next;
    bool is_dict;
};

static bool opens(value v) { return tag_of(v) == TAG_LIST || tag_of(v) == TAG_DICT; }

static void open_level(struct machine *m, struct level *levels, unsigned *depth, value v)
{
    struct object *object = pointer_of(v);
    if (*depth == DEPTH || object->fate != FATE_OPEN)
        give_up(m, SNAPSHOT_UNSUPPORTED);
    levels[(*depth)++] = (struct level){ object, 0, tag_of(v) == TAG_DICT };
    put_text(m, tag_of(v) == TAG_DICT ? "{" : "[");
}

static void put_pair(struct machine *m, value v)
{
    const struct object *pair = pointer_of(v);
    put_text(m, "[");
    for (uint64_t i = 0; i < pair->count; i++) {
        if (i > 0)
            put_text(m, ",");
        put_scalar(m, pair->items[i]);
    }
    put_text(m, "]");
}

/* Writes the key before the next item of a dict, and the item where it is not to be entered. */
static bool put_special(struct machine *m, value key, value item)
{
    if (tag_of(key) != TAG_STRING)
        give_up(m, SNAPSHOT_UNSUPPORTED);
    const struct string *name = pointer_of(key);
    put_string(m, name);
    put_text(m, ":");
    if (name->word == WORD_FRAMES) {
        char text[16];
        snprintf(text, sizeof text, "%" PRId32, stack_of(m, item));
        put_text(m, text);
        return true;
    }
    if (name->word == WORD_SEGMENT_POOL_ID && tag_of(item) == TAG_TUPLE) {
        put_pair(m, item);
        return true;
    }
    return false;
}

static void put_value(struct machine *m, value v)
{
    struct level levels[DEPTH];
    unsigned depth = 0;
    if (!opens(v)) {
        put_scalar(m, v);
        return;
    }
    open_level(m, levels, &depth, v);
    while (depth > 0) {
        struct level *level = &levels[depth - 1];
        /* The `frames` of something inside may be this very container. */
        if (level->object->fate != FATE_OPEN)
            give_up(m, SNAPSHOT_UNSUPPORTED);
        if (level->next == level->object->count) {
            put_text(m, level->is_dict ? "}" : "]");
            depth--;
            continue;
        }
        if (level->next > 0)
            put_text(m, ",");
        value item = level->object->items[level->next++];
        if (level->is_dict) {
            value key = item;
            item = level->object->items[level->next++];
            if (put_special(m, key, item))
                continue;
        }
        if (opens(item))
            open_level(m, levels, &depth, item);
        else
            put_scalar(m, item);
    }
}

static void put_member(struct machine *m, const char *name, value v)
{
    put_text(m, m->rest.count > 1 ? ",\"" : "\"");
    put_text(m, name);
    put_text(m, "\":");
    put_value(m, v);
}

/* The rows of one device. They follow each other unless a file repeats an entry. */
static void write_device(struct machine *m, value v)
{
    if (tag_of(v) != TAG_LIST)
        give_up(m, SNAPSHOT_UNSUPPORTED);
    struct object *list = pointer_of(v);
    if (list->fate != FATE_OPEN)
        give_up(m, SNAPSHOT_UNSUPPORTED);
    struct snapshot_device device = { 0, list->count, NULL };
    bool in_order = true;
    for (uint64_t i = 0; i < list->count; i++) {
        if (tag_of(list->items[i]) != TAG_ROW)
            give_up(m, SNAPSHOT_UNSUPPORTED);
        in_order = in_order && row_of(list->items[i]) == row_of(list->items[0]) + i;
    }
    if (list->count > 0)
        device.start = row_of(list->items[0]);
    grow(m, &m->devices, 1);
    struct snapshot_device *kept = (struct snapshot_device *)m->devices.items + m->devices.count++;
    *kept = device;
    if (in_order)
        return;
    struct array rows = { .width = sizeof(uint64_t) };
    kept->rows = grow(m, &rows, list->count);
    for (uint64_t i = 0; i < list->count; i++)
        kept->rows[i] = row_of(list->items[i]);
}

static void write_devices(struct machine *m, value v)
{
    if (tag_of(v) != TAG_LIST || ((struct object *)pointer_of(v))->fate != FATE_OPEN)
        give_up(m, SNAPSHOT_UNSUPPORTED);
    const struct object *list = pointer_of(v);
    for (uint64_t i = 0; i < list->count; i++)
        write_device(m, list->items[i]);
}

_Noreturn static void refuse_root(struct machine *m, value root)
{
    static const char *const names[] = { [TAG_INT] = "int", [TAG_NUMBER] = "number", [TAG_ROW] = "dict", [TAG_STRING] = "str",
                                         [TAG_LIST] = "list", [TAG_TUPLE] = "tuple", [TAG_DICT] = "dict" };
    const char *name = names[tag_of(root)];
    snprintf(m->out->detail, sizeof m->out->detail, "%s", name != NULL ? name : "constant");
    give_up(m, SNAPSHOT_NO_SNAPSHOT);
}

void write_result(struct machine *m, value root)
{
    put_text(m, "{");
    if (tag_of(root) == TAG_LIST) {
        put_member(m, "segments", root);
    } else {
        bool has_segments = false, has_traces = false, has_settings = false;
        struct object *dict = tag_of(root) == TAG_DICT ? pointer_of(root) : NULL;
        if (dict == NULL)
            refuse_root(m, root);
        if (dict->fate != FATE_OPEN)
            give_up(m, SNAPSHOT_UNSUPPORTED);
        value segments = item_of(dict, WORD_SEGMENTS, &has_segments);
        value traces = item_of(dict, WORD_DEVICE_TRACES, &has_traces);
        value settings = item_of(dict, WORD_ALLOCATOR_SETTINGS, &has_settings);
        if (!has_segments && !has_traces)
            refuse_root(m, root);
        if (has_traces)
            write_devices(m, traces);
        if (has_segments)
            put_member(m, "segments", segments);
        if (has_settings)
            put_member(m, "allocator_settings", settings);
    }
    put_text(m, "}");
}

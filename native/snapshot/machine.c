/* The pickle machine of the snapshot reader: instructions that build plain values; every other one ends the reading. */
#include <string.h>

#include "machine.h"

_Noreturn void give_up(struct machine *m, enum snapshot_status status)
{
    m->out->status = (uint32_t)status;
    longjmp(m->give_up, 1);
}

static const char *const WORDS[WORD_COUNT] = {
    [WORD_ALLOC] = "alloc",
    [WORD_FREE_REQUESTED] = "free_requested",
    [WORD_FREE_COMPLETED] = "free_completed",
    [WORD_SEGMENT_ALLOC] = "segment_alloc",
    [WORD_SEGMENT_FREE] = "segment_free",
    [WORD_SEGMENT_MAP] = "segment_map",
    [WORD_SEGMENT_UNMAP] = "segment_unmap",
    [WORD_OOM] = "oom",
    [WORD_SNAPSHOT] = "snapshot",
    [WORD_ANNOTATE] = "annotate",
    [WORD_ACTION] = "action",
    [WORD_ADDR] = "addr",
    [WORD_DEVICE_FREE] = "device_free",
    [WORD_SIZE] = "size",
    [WORD_STREAM] = "stream",
    [WORD_TIME_US] = "time_us",
    [WORD_FRAMES] = "frames",
    [WORD_COMPILE_CONTEXT] = "compile_context",
    [WORD_USER_METADATA] = "user_metadata",
    [WORD_POOL_ID] = "pool_id",
    [WORD_FILENAME] = "filename",
    [WORD_LINE] = "line",
    [WORD_NAME] = "name",
    [WORD_SEGMENTS] = "segments",
    [WORD_DEVICE_TRACES] = "device_traces",
    [WORD_ALLOCATOR_SETTINGS] = "allocator_settings",
    [WORD_SEGMENT_POOL_ID] = "segment_pool_id",
    [WORD_NOT_AVAILABLE] = "N/A",
};

enum word word_of(const uint8_t *bytes, uint64_t length)
{
    for (int word = WORD_OTHER + 1; word < WORD_COUNT; word++)
        if (strlen(WORDS[word]) == length && memcmp(WORDS[word], bytes, length) == 0)
            return (enum word)word;
    return WORD_OTHER;
}

/* Reading the data */

static const uint8_t *take(struct machine *m, uint64_t length)
{
    if (length > m->bytes - m->position)
        give_up(m, SNAPSHOT_CUT_SHORT);
    const uint8_t *taken = m->data + m->position;
    m->position += length;
    return taken;
}

static uint64_t take_unsigned(struct machine *m, unsigned width)
{
    const uint8_t *p = take(m, width);
    uint64_t n = 0;
    for (unsigned i = 0; i < width; i++)
        n |= (uint64_t)p[i] << 8 * i;
    return n;
}

static value new_number(struct machine *m, struct number number)
{
    struct number *kept = take_memory(m, sizeof number);
    *kept = number;
    return (value)(uintptr_t)kept | TAG_NUMBER;
}

#define INLINE_MAX (((int64_t)1 << 60) - 1)

static value new_int(struct machine *m, int64_t n)
{
    if (n <= INLINE_MAX && n >= -INLINE_MAX)
        return (value)n << 3 | TAG_INT;
    return new_number(m, (struct number){ .kind = NUMBER_SIGNED, .as.i = n });
}

/* LONG1, LONG4: little-endian two's complement of any length; here of what fits 64 bits, with or without sign. */
static value take_long(struct machine *m, unsigned width)
{
    uint64_t length = take_unsigned(m, width);
    if (length > 16)
        give_up(m, SNAPSHOT_DAMAGED);
    const uint8_t *p = take(m, length);
    bool negative = length > 0 && p[length - 1] >= 0x80;
    uint64_t low = negative ? UINT64_MAX : 0;
    for (uint64_t i = 0; i < length && i < 8; i++)
        low = (low & ~((uint64_t)0xff << 8 * i)) | (uint64_t)p[i] << 8 * i;
    for (uint64_t i = 8; i < length; i++)
        if (p[i] != (negative ? 0xff : 0))
            give_up(m, SNAPSHOT_DAMAGED);
    if (negative != (low >> 63 == 1)) {
        if (negative)
            give_up(m, SNAPSHOT_DAMAGED);
        return new_number(m, (struct number){ .kind = NUMBER_UNSIGNED, .as.u = low });
    }
    return new_int(m, (int64_t)low);
}

static value take_float(struct machine *m)
{
    const uint8_t *p = take(m, 8);
    uint64_t bits = 0;
    for (int i = 0; i < 8; i++)
        bits = bits << 8 | p[i];
    struct number number = { .kind = NUMBER_FLOAT };
    memcpy(&number.as.f, &bits, 8);
    return new_number(m, number);
}

/* Length of the UTF-8 sequence at p, 0 where it is none. Lone surrogates pass, as they do in pickle. */
static unsigned sequence(const uint8_t *p, uint64_t left)
{
    static const struct {
        uint8_t first_low, first_high, second_low, second_high, length;
    } forms[] = {
        { 0x00, 0x7f, 0, 0, 1 },          { 0xc2, 0xdf, 0x80, 0xbf, 2 }, { 0xe0, 0xe0, 0xa0, 0xbf, 3 },
        { 0xe1, 0xef, 0x80, 0xbf, 3 },    { 0xf0, 0xf0, 0x90, 0xbf, 4 }, { 0xf1, 0xf3, 0x80, 0xbf, 4 },
        { 0xf4, 0xf4, 0x80, 0x8f, 4 },
    };
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        if (*p < forms[i].first_low || *p > forms[i].first_high)
            continue;
        unsigned length = forms[i].length;
        if (length > left || (length > 1 && (p[1] < forms[i].second_low || p[1] > forms[i].second_high)))
            return 0;
        for (unsigned k = 2; k < length; k++)
            if ((p[k] & 0xc0) != 0x80)
                return 0;
        return length;
    }
    return 0;
}

static value take_string(struct machine *m, unsigned width)
{
    uint64_t length = take_unsigned(m, width);
    const uint8_t *bytes = take(m, length);
    for (uint64_t i = 0; i < length;) {
        unsigned step = sequence(bytes + i, length - i);
        if (step == 0)
            give_up(m, SNAPSHOT_DAMAGED);
        i += step;
    }
    struct string *string = take_memory(m, sizeof *string);
    *string = (struct string){ bytes, length, word_of(bytes, length), NOTHING };
    return (value)(uintptr_t)string | TAG_STRING;
}

/* Strings of Python 2: Latin-1, which is UTF-8 only as far as ASCII goes. */
static value take_old_string(struct machine *m, unsigned width)
{
    uint64_t start = m->position;
    uint64_t length = take_unsigned(m, width);
    const uint8_t *bytes = take(m, length);
    for (uint64_t i = 0; i < length; i++)
        if (bytes[i] >= 0x80)
            give_up(m, SNAPSHOT_UNSUPPORTED);
    m->position = start;
    return take_string(m, width);
}

/* The stack */

static value pop(struct machine *m)
{
    if (m->stack.count == 0)
        give_up(m, SNAPSHOT_CUT_SHORT);
    value v = ((value *)m->stack.items)[--m->stack.count];
    if (v == VALUE_MARK)
        give_up(m, SNAPSHOT_DAMAGED);
    return v;
}

static value top(struct machine *m)
{
    if (m->stack.count == 0)
        give_up(m, SNAPSHOT_CUT_SHORT);
    value v = ((value *)m->stack.items)[m->stack.count - 1];
    if (v == VALUE_MARK)
        give_up(m, SNAPSHOT_DAMAGED);
    return v;
}

/* Takes everything above the newest mark, and the mark. The items stay readable until the next push. */
static value *pop_to_mark(struct machine *m, uint64_t *count)
{
    value *items = m->stack.items;
    uint64_t at = m->stack.count;
    do {
        if (at == 0)
            give_up(m, SNAPSHOT_CUT_SHORT);
        at--;
    } while (items[at] != VALUE_MARK);
    *count = m->stack.count - at - 1;
    m->stack.count = at;
    return items + at + 1;
}

/* Containers */

static value new_object(struct machine *m, enum tag tag, const value *items, uint64_t count)
{
    struct object *object = take_memory(m, sizeof *object);
    memset(object, 0, sizeof *object);
    if (count > 0) {
        reserve_items(m, object, count);
        memcpy(object->items, items, count * sizeof *items);
        object->count = (uint32_t)count;
    }
    return (value)(uintptr_t)object | tag;
}

static struct object *container_at_top(struct machine *m, enum tag tag)
{
    value v = top(m);
    if (tag_of(v) != tag)
        give_up(m, SNAPSHOT_DAMAGED);
    struct object *object = pointer_of(v);
    if (object->fate != FATE_OPEN)
        give_up(m, SNAPSHOT_UNSUPPORTED);
    return object;
}

/* Finished trace entries among the items of a list become rows. */
static void note_entries(struct machine *m, value *items, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        if (is_entry(items[i]))
            items[i] = entry_to_row(m, items[i]);
}

static void append(struct machine *m, value *items, uint64_t count)
{
    /* First the rows: an entry may hold the very list and thereby close it. */
    note_entries(m, items, count);
    struct object *list = container_at_top(m, TAG_LIST);
    reserve_items(m, list, list->count + count);
    if (count > 0)
        memcpy(list->items + list->count, items, count * sizeof *items);
    list->count += (uint32_t)count;
}

static void check_keys(struct machine *m, const value *items, uint64_t count)
{
    if (count % 2 != 0)
        give_up(m, SNAPSHOT_DAMAGED);
    for (uint64_t i = 0; i < count; i += 2)
        if (tag_of(items[i]) >= TAG_LIST || tag_of(items[i]) == TAG_ROW)
            give_up(m, SNAPSHOT_DAMAGED);
}

static void set_items(struct machine *m, const value *items, uint64_t count)
{
    struct object *dict = container_at_top(m, TAG_DICT);
    check_keys(m, items, count);
    reserve_items(m, dict, dict->count + count);
    if (count > 0)
        memcpy(dict->items + dict->count, items, count * sizeof *items);
    dict->count += (uint32_t)count;
}

static void build(struct machine *m, enum tag tag, uint64_t count)
{
    value *items = m->stack.items;
    if (m->stack.count < count)
        give_up(m, SNAPSHOT_CUT_SHORT);
    items += m->stack.count - count;
    for (uint64_t i = 0; i < count; i++)
        if (items[i] == VALUE_MARK)
            give_up(m, SNAPSHOT_DAMAGED);
    m->stack.count -= count;
    push(m, new_object(m, tag, items, count));
}

/* LIST, TUPLE and DICT: a container of everything above the mark. */
static void build_from_mark(struct machine *m, enum tag tag)
{
    uint64_t count;
    value *items = pop_to_mark(m, &count);
    if (tag == TAG_DICT)
        check_keys(m, items, count);
    if (tag == TAG_LIST)
        note_entries(m, items, count);
    push(m, new_object(m, tag, items, count));
}

/* The memo. Picklers number it from 0 without gaps; others take the slow way. */

static void put(struct machine *m, uint64_t index)
{
    value v = top(m);
    if (index > m->memo.count)
        give_up(m, SNAPSHOT_UNSUPPORTED);
    if (index == m->memo.count)
        APPEND(m, &m->memo, value, v);
    else
        ((value *)m->memo.items)[index] = v;
}

static void get(struct machine *m, uint64_t index)
{
    if (index >= m->memo.count)
        give_up(m, SNAPSHOT_DAMAGED);
    push(m, ((value *)m->memo.items)[index]);
}

/* Refusals */

static void note(struct machine *m, const uint8_t *bytes, uint64_t length)
{
    char *detail = m->out->detail;
    size_t used = strlen(detail);
    if (used > 0)
        detail[used++] = '.';
    for (uint64_t i = 0; i < length && i < 200; i++)
        if (bytes[i] != 0)
            detail[used++] = (char)bytes[i];
    detail[used] = 0;
}

static void note_line(struct machine *m)
{
    const uint8_t *start = m->data + m->position;
    const uint8_t *end = memchr(start, '\n', m->bytes - m->position);
    if (end == NULL)
        give_up(m, SNAPSHOT_CUT_SHORT);
    note(m, start, (uint64_t)(end - start));
    m->position += (uint64_t)(end - start) + 1;
}

_Noreturn static void refuse(struct machine *m, uint8_t instruction)
{
    m->out->instruction = instruction;
    if (instruction == 'c' || instruction == 'i') {
        note_line(m);
        note_line(m);
    } else if (instruction == 0x93 && m->stack.count >= 2) {
        const value *last = (const value *)m->stack.items + m->stack.count - 2;
        for (int i = 0; i < 2; i++)
            if (tag_of(last[i]) == TAG_STRING) {
                const struct string *string = pointer_of(last[i]);
                note(m, string->bytes, string->length);
            }
    }
    give_up(m, SNAPSHOT_REFUSED);
}

static void expect_protocol(struct machine *m)
{
    if (take_unsigned(m, 1) > 5)
        give_up(m, SNAPSHOT_PROTOCOL);
}

static void push_number(struct machine *m, uint8_t instruction)
{
    switch (instruction) {
    case 'J': push(m, new_int(m, (int32_t)(uint32_t)take_unsigned(m, 4))); break;
    case 'K': push(m, new_int(m, (int64_t)take_unsigned(m, 1))); break;
    case 'M': push(m, new_int(m, (int64_t)take_unsigned(m, 2))); break;
    case 0x8a: push(m, take_long(m, 1)); break;
    case 0x8b: push(m, take_long(m, 4)); break;
    default: push(m, take_float(m)); break;
    }
}

static void push_text(struct machine *m, uint8_t instruction)
{
    switch (instruction) {
    case 'X': push(m, take_string(m, 4)); break;
    case 0x8c: push(m, take_string(m, 1)); break;
    case 0x8d: push(m, take_string(m, 8)); break;
    case 'U': push(m, take_old_string(m, 1)); break;
    case 'T': push(m, take_old_string(m, 4)); break;
    case 'C': take(m, take_unsigned(m, 1)); push(m, VALUE_BYTES); break;
    case 'B': take(m, take_unsigned(m, 4)); push(m, VALUE_BYTES); break;
    default: take(m, take_unsigned(m, 8)); push(m, VALUE_BYTES); break;
    }
}

static void fill(struct machine *m, uint8_t instruction)
{
    uint64_t count;
    value *items;
    value pair[2];
    switch (instruction) {
    case 'e': items = pop_to_mark(m, &count); append(m, items, count); break;
    case 'u': items = pop_to_mark(m, &count); set_items(m, items, count); break;
    case 'a': pair[0] = pop(m); append(m, pair, 1); break;
    default: pair[1] = pop(m); pair[0] = pop(m); set_items(m, pair, 2); break;
    }
}

static void shuffle(struct machine *m, uint8_t instruction)
{
    uint64_t count;
    switch (instruction) {
    case '(': push(m, VALUE_MARK); break;
    case '1': pop_to_mark(m, &count); break;
    case '2': push(m, top(m)); break;
    default:
        if (m->stack.count == 0)
            give_up(m, SNAPSHOT_CUT_SHORT);
        m->stack.count--;
    }
}

value run(struct machine *m)
{
    for (;;) {
        uint8_t instruction = *take(m, 1);
        switch (instruction) {
        case '.': return pop(m);
        case 0x80: expect_protocol(m); break;
        case 0x95: take(m, 8); break; /* FRAME: a hint for readers of streams */
        case 'N': push(m, VALUE_NONE); break;
        case 0x88: push(m, VALUE_TRUE); break;
        case 0x89: push(m, VALUE_FALSE); break;
        case '(': case '0': case '1': case '2': shuffle(m, instruction); break;
        case 'J': case 'K': case 'M': case 0x8a: case 0x8b: case 'G': push_number(m, instruction); break;
        case 'X': case 0x8c: case 0x8d: case 'U': case 'T': case 'C': case 'B': case 0x8e: case 0x96:
            push_text(m, instruction);
            break;
        case ']': push(m, new_object(m, TAG_LIST, NULL, 0)); break;
        case '}': push(m, new_object(m, TAG_DICT, NULL, 0)); break;
        case ')': push(m, new_object(m, TAG_TUPLE, NULL, 0)); break;
        case 'l': build_from_mark(m, TAG_LIST); break;
        case 'd': build_from_mark(m, TAG_DICT); break;
        case 't': build_from_mark(m, TAG_TUPLE); break;
        case 0x85: build(m, TAG_TUPLE, 1); break;
        case 0x86: build(m, TAG_TUPLE, 2); break;
        case 0x87: build(m, TAG_TUPLE, 3); break;
        case 'a': case 'e': case 's': case 'u': fill(m, instruction); break;
        case 'h': get(m, take_unsigned(m, 1)); break;
        case 'j': get(m, take_unsigned(m, 4)); break;
        case 'q': put(m, take_unsigned(m, 1)); break;
        case 'r': put(m, take_unsigned(m, 4)); break;
        case 0x94: put(m, m->memo.count); break;
        case 'I': case 'L': case 'F': case 'S': case 'V': case 'g': case 'p': /* text of protocol 0 */
            give_up(m, SNAPSHOT_UNSUPPORTED);
        case 'c': case 0x93: case 'R': case 'b': case 'i': case 'o': case 0x81: case 0x92: case 0x82: case 0x83:
        case 0x84: case 'P': case 'Q': case 0x97: case 0x98: case 0x8f: case 0x90: case 0x91:
            refuse(m, instruction);
        default:
            m->out->instruction = instruction;
            give_up(m, SNAPSHOT_NOT_PICKLE);
        }
    }
}

/* Inside of the snapshot reader: values, objects and the state that all its files share. */
#ifndef HOTBED_SNAPSHOT_MACHINE_H
#define HOTBED_SNAPSHOT_MACHINE_H

#include <setjmp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "snapshot.h"

/* A value is one word: the low three bits say what it is, the rest is a small integer, a row or a pointer. */
typedef uint64_t value;

enum tag { TAG_CONSTANT, TAG_INT, TAG_ROW, TAG_NUMBER, TAG_STRING, TAG_LIST, TAG_TUPLE, TAG_DICT };

#define CONSTANT(n) ((value)(n) << 3 | TAG_CONSTANT)
#define VALUE_NONE CONSTANT(0)
#define VALUE_FALSE CONSTANT(1)
#define VALUE_TRUE CONSTANT(2)
#define VALUE_MARK CONSTANT(3)
#define VALUE_BYTES CONSTANT(4) /* byte strings: legal, never looked into */

static inline enum tag tag_of(value v) { return (enum tag)(v & 7); }
static inline void *pointer_of(value v) { return (void *)(uintptr_t)(v & ~(value)7); }
static inline uint64_t row_of(value v) { return v >> 3; }

/* Words that the reader looks for; a string knows which of them it is. */
enum word {
    WORD_OTHER,
    /* actions, in the order of hotbed.trace.Action */
    WORD_ALLOC,
    WORD_FREE_REQUESTED,
    WORD_FREE_COMPLETED,
    WORD_SEGMENT_ALLOC,
    WORD_SEGMENT_FREE,
    WORD_SEGMENT_MAP,
    WORD_SEGMENT_UNMAP,
    WORD_OOM,
    WORD_SNAPSHOT,
    WORD_ANNOTATE,
    /* keys */
    WORD_ACTION,
    WORD_ADDR,
    WORD_DEVICE_FREE,
    WORD_SIZE,
    WORD_STREAM,
    WORD_TIME_US,
    WORD_FRAMES,
    WORD_COMPILE_CONTEXT,
    WORD_USER_METADATA,
    WORD_POOL_ID,
    WORD_FILENAME,
    WORD_LINE,
    WORD_NAME,
    WORD_SEGMENTS,
    WORD_DEVICE_TRACES,
    WORD_ALLOCATOR_SETTINGS,
    WORD_SEGMENT_POOL_ID,
    WORD_NOT_AVAILABLE, /* "N/A" */
    WORD_COUNT
};

#define ACTION_OTHER 10
#define NOTHING (-1)

/* Numbers that do not fit a value. */
struct number {
    enum { NUMBER_SIGNED, NUMBER_UNSIGNED, NUMBER_FLOAT } kind;
    union {
        int64_t i;
        uint64_t u;
        double f;
    } as;
};

struct string {
    const uint8_t *bytes; /* in the data */
    uint64_t length;
    enum word word;
    int32_t text; /* index in the table of texts once it is there, else NOTHING */
};

/* What became of a container. Once it is a row, a frame or a stack its items are gone and it must not change. */
enum fate { FATE_OPEN, FATE_ROW, FATE_FRAME, FATE_STACK };

/* List, tuple or dict (items are then key, value, key, value ...). */
struct object {
    union {
        value *items;   /* while open */
        uint64_t index; /* of the row, frame or stack that it became */
    };
    uint32_t count;
    uint32_t capacity;
    uint32_t fate;
};

/* A growing array of 8, 16, 32 or 64 bit elements. */
struct array {
    void *items;
    uint64_t count;
    uint64_t capacity;
    uint32_t width;
};

/* Hash table from content to index in arrays that its owner keeps. */
struct table {
    uint32_t *slots; /* index + 1, 0: empty */
    uint64_t *hashes; /* of each index */
    uint64_t count;
    uint64_t slot_count; /* power of two */
};

struct block {
    struct block *next;
};

/* Stands before each item array that is too large for the arena. */
struct large {
    struct large *previous;
    struct large *next;
};

#define SMALL_ITEMS 64u

struct machine {
    const uint8_t *data;
    uint64_t bytes;
    uint64_t position;

    struct snapshot *out;
    jmp_buf give_up;
    uint64_t memory_left;

    struct block *blocks; /* arena of objects, strings, numbers and small item arrays */
    uint8_t *arena;
    uint64_t arena_left;
    void *spare[SMALL_ITEMS + 1]; /* freed item arrays by capacity, linked through their first item */
    struct large *large;          /* item arrays that came from malloc */

    struct array stack; /* value */
    struct array memo;  /* value */

    struct array action, address, size, stream, time_us, pool, call_stack, metadata, compile_context;
    struct array text_end, text_bytes;
    struct array frame_filename, frame_line, frame_name;
    struct array stack_end, stack_frames;
    struct array pools;
    struct array devices;
    struct array rest;
    struct table texts, frames, stacks, pool_table;
    struct array scratch; /* int32_t: frames of the stack that is being made */
};

/* Ends the reading; does not return. */
_Noreturn void give_up(struct machine *m, enum snapshot_status status);

/* memory.c */
void *take_memory(struct machine *m, uint64_t bytes); /* from the arena, aligned to 8 */
void drop_items(struct machine *m, struct object *object);
void reserve_items(struct machine *m, struct object *object, uint64_t count);
void *grow(struct machine *m, struct array *array, uint64_t more);
void shrink(struct array *array);
void free_machine(struct machine *m);

static inline void push(struct machine *m, value v)
{
    if (m->stack.count == m->stack.capacity)
        grow(m, &m->stack, 1);
    ((value *)m->stack.items)[m->stack.count++] = v;
}

#define APPEND(m, array, type, element)                                      \
    do {                                                                     \
        if ((array)->count == (array)->capacity)                             \
            grow(m, array, 1);                                               \
        ((type *)(array)->items)[(array)->count++] = (type)(element);        \
    } while (0)

/* machine.c */
value run(struct machine *m);
enum word word_of(const uint8_t *bytes, uint64_t length);

/* tables.c */
int32_t text_index(struct machine *m, const uint8_t *bytes, uint64_t length);
int32_t string_index(struct machine *m, value string);
int32_t frame_index(struct machine *m, int32_t filename, int64_t line, int32_t name);
int32_t stack_index(struct machine *m, const int32_t *frames, uint64_t count);
int32_t pool_index(struct machine *m, uint64_t first, uint64_t second);
void free_table(struct table *table);

/* entries.c */
bool is_entry(value v);
value entry_to_row(struct machine *m, value dict);
int32_t stack_of(struct machine *m, value frames);
value item_of(const struct object *dict, enum word key, bool *found);
bool integer_of(value v, bool *negative, uint64_t *bits);

/* rest.c */
void write_result(struct machine *m, value root);

#endif

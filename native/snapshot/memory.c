/* Memory of the snapshot reader: an arena, recycled item arrays, growing arrays, and one limit for all. */
#include <stdlib.h>
#include <string.h>

#include "machine.h"

#define ARENA_BYTES ((uint64_t)1 << 20)

static void charge(struct machine *m, uint64_t bytes)
{
    if (bytes > m->memory_left)
        give_up(m, SNAPSHOT_NO_MEMORY);
    m->memory_left -= bytes;
}

void *take_memory(struct machine *m, uint64_t bytes)
{
    bytes = (bytes + 7) & ~(uint64_t)7;
    if (bytes > m->arena_left) {
        charge(m, ARENA_BYTES);
        struct block *fresh = malloc(ARENA_BYTES);
        if (fresh == NULL)
            give_up(m, SNAPSHOT_NO_MEMORY);
        fresh->next = m->blocks;
        m->blocks = fresh;
        m->arena = (uint8_t *)fresh + sizeof *fresh;
        m->arena_left = ARENA_BYTES - sizeof *fresh;
    }
    void *taken = m->arena;
    m->arena += bytes;
    m->arena_left -= bytes;
    return taken;
}

static value *take_large(struct machine *m, uint32_t capacity)
{
    uint64_t bytes = sizeof(struct large) + capacity * sizeof(value);
    charge(m, bytes);
    struct large *large = malloc(bytes);
    if (large == NULL)
        give_up(m, SNAPSHOT_NO_MEMORY);
    *large = (struct large){ NULL, m->large };
    if (m->large != NULL)
        m->large->previous = large;
    m->large = large;
    return (value *)(large + 1);
}

static void free_large(struct machine *m, value *items, uint32_t capacity)
{
    struct large *large = (struct large *)(void *)items - 1;
    if (large->previous != NULL)
        large->previous->next = large->next;
    else
        m->large = large->next;
    if (large->next != NULL)
        large->next->previous = large->previous;
    free(large);
    m->memory_left += sizeof(struct large) + capacity * sizeof(value);
}

/* Small item arrays come from the arena in even capacities, and are recycled. */
static value *take_small(struct machine *m, uint32_t capacity)
{
    void *spare = m->spare[capacity];
    if (spare == NULL)
        return take_memory(m, capacity * sizeof(value));
    memcpy(&m->spare[capacity], spare, sizeof(void *));
    return spare;
}

void drop_items(struct machine *m, struct object *object)
{
    uint32_t capacity = object->capacity;
    if (capacity > SMALL_ITEMS) {
        free_large(m, object->items, capacity);
    } else if (capacity > 0) {
        memcpy(object->items, &m->spare[capacity], sizeof(void *));
        m->spare[capacity] = object->items;
    }
    object->items = NULL;
    object->count = 0;
    object->capacity = 0;
}

void reserve_items(struct machine *m, struct object *object, uint64_t count)
{
    if (count <= object->capacity)
        return;
    /* The first filling is usually the only one: exact. After that, by half. */
    uint64_t wanted = object->count == 0 ? count : count + count / 2;
    if (wanted > UINT32_MAX - 1)
        give_up(m, SNAPSHOT_NO_MEMORY);
    uint32_t capacity = (uint32_t)(wanted + 1) & ~(uint32_t)1;
    value *items = capacity > SMALL_ITEMS ? take_large(m, capacity) : take_small(m, capacity);
    uint32_t kept = object->count;
    if (kept > 0)
        memcpy(items, object->items, kept * sizeof(value));
    drop_items(m, object);
    object->items = items;
    object->count = kept;
    object->capacity = capacity;
}

void *grow(struct machine *m, struct array *array, uint64_t more)
{
    if (array->capacity - array->count >= more)
        return array->items;
    uint64_t wanted = array->count + more;
    uint64_t capacity = wanted + wanted / 2 + 64;
    if (wanted < more || capacity > UINT64_MAX / 16)
        give_up(m, SNAPSHOT_NO_MEMORY);
    charge(m, (capacity - array->capacity) * array->width);
    void *items = realloc(array->items, capacity * array->width);
    if (items == NULL)
        give_up(m, SNAPSHOT_NO_MEMORY);
    array->items = items;
    array->capacity = capacity;
    return items;
}

void shrink(struct array *array)
{
    void *items = realloc(array->items, (array->count > 0 ? array->count : 1) * array->width);
    if (items != NULL)
        array->items = items;
}

static void free_arena(struct machine *m)
{
    while (m->blocks != NULL) {
        struct block *next = m->blocks->next;
        free(m->blocks);
        m->blocks = next;
    }
    while (m->large != NULL) {
        struct large *next = m->large->next;
        free(m->large);
        m->large = next;
    }
}

void free_machine(struct machine *m)
{
    free_arena(m);
    struct array *arrays[] = {
        &m->stack, &m->memo, &m->action, &m->address, &m->size, &m->stream, &m->time_us, &m->pool, &m->call_stack,
        &m->metadata, &m->compile_context, &m->text_end, &m->text_bytes, &m->frame_filename, &m->frame_line,
        &m->frame_name, &m->stack_end, &m->stack_frames, &m->pools, &m->devices, &m->rest, &m->scratch,
    };
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++)
        free(arrays[i]->items);
    free_table(&m->texts);
    free_table(&m->frames);
    free_table(&m->stacks);
    free_table(&m->pool_table);
}

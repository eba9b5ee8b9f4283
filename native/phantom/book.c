/* A growing hash table from handle to object. */
#include "book.h"

#include <stdlib.h>

/* Handles look like addresses but are none: small, and apart from anything that malloc returns. */
enum { FIRST_HANDLE = 0x10000, HANDLE_STEP = 0x10, FIRST_CAPACITY = 256 };

static struct object tombstone;

static size_t home(const struct book *book, uint64_t handle) {
    return (size_t)((handle / HANDLE_STEP) * 11400714819323198485ull >> 20) & (book->capacity - 1);
}

static void place(struct book *book, struct object *object) {
    size_t i = home(book, object->handle);
    while (book->slots[i] && book->slots[i] != &tombstone)
        i = (i + 1) & (book->capacity - 1);
    if (!book->slots[i])
        book->filled++;
    book->slots[i] = object;
}

/* Keeps at least half of the slots free of entries and tombstones. */
static int make_room(struct book *book) {
    if (book->filled * 2 < book->capacity)
        return 0;
    struct book grown = {.next = book->next, .live = book->live};
    grown.capacity = book->capacity ? book->capacity : FIRST_CAPACITY;
    while (grown.capacity < (book->live + 1) * 4)
        grown.capacity *= 2;
    grown.slots = calloc(grown.capacity, sizeof *grown.slots);
    if (!grown.slots)
        return -1;
    for (size_t i = 0; i < book->capacity; i++)
        if (book->slots[i] && book->slots[i] != &tombstone)
            place(&grown, book->slots[i]);
    free(book->slots);
    *book = grown;
    return 0;
}

void *book_new(struct book *book, enum kind kind, size_t size) {
    if (make_room(book))
        return NULL;
    struct object *object = calloc(1, size);
    if (!object)
        return NULL;
    object->handle = FIRST_HANDLE + HANDLE_STEP * book->next++;
    object->kind = kind;
    place(book, object);
    book->live++;
    return object;
}

static struct object **find(const struct book *book, uint64_t handle) {
    if (!book->capacity)
        return NULL;
    for (size_t i = home(book, handle); book->slots[i]; i = (i + 1) & (book->capacity - 1))
        if (book->slots[i]->handle == handle && book->slots[i] != &tombstone)
            return &book->slots[i];
    return NULL;
}

void *book_find(const struct book *book, uint64_t handle, enum kind kind) {
    struct object **slot = find(book, handle);
    return slot && (*slot)->kind == kind ? *slot : NULL;
}

void book_delete(struct book *book, void *object) {
    struct object **slot = find(book, ((struct object *)object)->handle);
    *slot = &tombstone;
    book->live--;
    free(object);
}

void *book_next(const struct book *book, enum kind kind, size_t *cursor) {
    while (*cursor < book->capacity) {
        struct object *object = book->slots[(*cursor)++];
        if (object && object->kind == kind && object != &tombstone)
            return object;
    }
    return NULL;
}

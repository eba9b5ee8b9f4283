/* Handles given to the program (streams, events, graphs, pools, physical memory) and what stands behind them. */
#ifndef HOTBED_PHANTOM_BOOK_H
#define HOTBED_PHANTOM_BOOK_H

#include <stddef.h>
#include <stdint.h>

enum kind { NO_KIND, STREAM, EVENT, GRAPH, GRAPH_NODE, GRAPH_EXEC, USER_OBJECT, POOL, PHYSICAL, MODULE, LIBRARY_OBJECT, KINDS };

/* First member of everything behind a handle. */
struct object {
    uint64_t handle;
    enum kind kind;
};

struct book {
    struct object **slots; /* open addressing; a removed entry leaves a tombstone */
    size_t capacity, filled;
    size_t live;
    uint64_t next;
};

/* Enters a zeroed object of `size` bytes under a handle that was never used before; NULL without host memory. */
void *book_new(struct book *book, enum kind kind, size_t size);

/* The object behind `handle` if it is of `kind`, else NULL. */
void *book_find(const struct book *book, uint64_t handle, enum kind kind);

/* Strikes the object out and frees it. */
void book_delete(struct book *book, void *object);

/* Walks over all objects of `kind`: start with *cursor = 0; NULL at the end. */
void *book_next(const struct book *book, enum kind kind, size_t *cursor);

#endif

#include "objects.h"

#include "event.h"
#include "graph.h"
#include "pool.h"
#include "stream.h"

#include <stdlib.h>

/* Lists that an object owns beside itself. */
static void empty(struct object *object) {
    switch (object->kind) {
    case STREAM: dependencies_clear(&((struct stream *)object)->last); break;
    case EVENT: dependencies_clear(&((struct event *)object)->after); break;
    case GRAPH_NODE: dependencies_clear(&((struct graph_node *)object)->after); break;
    case GRAPH: graph_empty((struct graph *)object); break;
    case GRAPH_EXEC: graph_exec_empty(object); break;
    case POOL: pool_empty((struct pool *)object); break;
    default: break;
    }
}

void objects_forget(void) {
    for (int kind = NO_KIND + 1; kind < KINDS; kind++) {
        size_t cursor = 0;
        for (struct object *object; (object = book_next(&phantom.objects, (enum kind)kind, &cursor));) {
            empty(object);
            book_delete(&phantom.objects, object);
        }
    }
    free(phantom.objects.slots);
    events_forget();
    captures_forget();
}

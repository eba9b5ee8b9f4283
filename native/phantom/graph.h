/* Graphs: nodes and what they depend on. Launching one does nothing. */
#ifndef HOTBED_PHANTOM_GRAPH_H
#define HOTBED_PHANTOM_GRAPH_H

#include "capture.h"
#include "state.h"

struct graph_node {
    struct object object;
    enum node_type type;
    struct graph *graph;
    struct dependencies after;
    uint64_t visited; /* by which search */
};

struct graph {
    struct object object;
    struct dependencies nodes;
    struct dependencies users;  /* user objects that it keeps, one entry per reference */
    struct dependencies memory; /* addresses that its capture was given */
};

struct graph *graph_new(void);
void graph_delete(struct graph *graph);

/* Frees the lists of a graph or an executable graph, and nothing that they name. */
void graph_empty(struct graph *graph);
void graph_exec_empty(struct object *exec);

/* Adds a node that depends on `after`; 0 without host memory. */
uint64_t graph_add(struct graph *graph, enum node_type type, const uint64_t *after, size_t count);

/* Whether `node` is one of `ends` or comes before one of them. */
bool graph_reaches(const struct dependencies *ends, uint64_t node);

#endif

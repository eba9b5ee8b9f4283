/* What the phantom remembers of the real library's backend descriptors, by their address. */
#ifndef HOTBED_DNN_NODES_H
#define HOTBED_DNN_NODES_H

#include <stdint.h>

struct search;

struct node {
    void *descriptor;
    int kind;
    int plain;             /* one convolution and nothing else: its kind, for the graph and what was made from it */
    int channels_last;     /* of the convolution's input: for it, the graph and what was made from it */
    int pointwise;         /* convolution: its weights are 1x1 */
    int product;           /* heuristics and what they gave: they asked cuBLASLt, which a product goes to */
    int mode;              /* heuristics: the mode asked for */
    void *made_from;       /* heuristics: the operation graph; plan: the engine configuration */
    struct search *search; /* heuristics, config, engine, plan of a plain convolution: holds a reference */
    int index;             /* config, engine, plan: place in the search's results; -1: none */
    int64_t workspace;     /* plan: bytes, -1 while unknown */
    struct node *next;
};

/* Begins to remember a descriptor. NULL without memory. */
struct node *node_add(void *descriptor, int kind);

/* NULL if nothing is remembered. The node stays valid until the program destroys the descriptor. */
struct node *node_find(const void *descriptor);

/* Forgets it, and gives up its reference to a search. */
void node_remove(const void *descriptor);

#endif

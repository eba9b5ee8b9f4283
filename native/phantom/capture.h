/* Stream capture: which streams record into which graph, and what is forbidden meanwhile. */
#ifndef HOTBED_PHANTOM_CAPTURE_H
#define HOTBED_PHANTOM_CAPTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* CUDA's numbers of the node types. */
enum node_type {
    NODE_KERNEL,
    NODE_MEMCPY,
    NODE_MEMSET,
    NODE_HOST,
    NODE_GRAPH,
    NODE_EMPTY,
    NODE_MEM_ALLOC = 10,
    NODE_MEM_FREE = 11,
};

struct graph;
struct stream;
struct event;

/* A set of node handles. */
struct dependencies {
    uint64_t *nodes;
    size_t count, room;
};

void dependencies_clear(struct dependencies *set);
int dependencies_add(struct dependencies *set, uint64_t node);

/* Adds a node to the graph that `stream` captures into; false if it captures nothing. */
bool capture_note(struct stream *stream, enum node_type type);

/* Ties memory that was allocated on a capturing stream to its graph. */
void capture_keep(struct stream *stream, uint64_t address);

/* Makes `event` mark the captured work of `stream`, or no captured work. */
int capture_record_event(struct stream *stream, struct event *event);

/* Lets `stream` follow the captured work that `event` marks: it joins the capture. */
int capture_wait_event(struct stream *stream, uint64_t event);

/* Refuses, and spoils the capture, where CUDA forbids a call: one that might allocate or synchronise while this
 * thread's mode and a running capture exclude it; a wait for a stream that captures (NULL: for the device) or for an event recorded in a capture; work on the
 * default stream (NULL: that one) while a stream that is tied to it captures. */
int capture_check_unsafe_call(void);
int capture_check_wait(struct stream *stream);
int capture_check_legacy(const struct stream *stream);
int capture_check_event(const struct event *event);

/* Takes a stream that goes away out of its capture. */
void capture_leave(struct stream *stream);

/* Whether a running capture records into `graph`. */
bool capture_uses(const struct graph *graph);

void captures_forget(void);

#endif

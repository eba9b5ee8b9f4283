/* Streams. Work on them takes no time; what they carry is their identity, priority and capture state. */
#ifndef HOTBED_PHANTOM_STREAM_H
#define HOTBED_PHANTOM_STREAM_H

#include "capture.h"
#include "state.h"

enum { NON_BLOCKING = 1 }; /* flag of a stream that does not wait for the default stream */

struct stream {
    struct object object;
    int device, priority;
    unsigned flags;
    struct capture *capture; /* the capture that it takes part in */
    struct dependencies last;  /* what the next captured node depends on */
};

/* The stream behind a handle. 0, 1 and 2 are CUDA's names for the default streams. Any other number that we did not
 * hand out stands for a stream that somebody else made, and acts like the default stream of the device. */
struct stream *stream_of(void *handle);

#endif

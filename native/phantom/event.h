/* Events. They are ready at once, unless phantom_hold_events() was on when they were recorded. */
#ifndef HOTBED_PHANTOM_EVENT_H
#define HOTBED_PHANTOM_EVENT_H

#include "capture.h"
#include "state.h"

struct event {
    struct object object;
    unsigned flags;
    uint64_t sequence; /* of the last recording; 0: never recorded */
    uint64_t stream;   /* handle of the stream it was recorded on */
    bool pending;
    uint64_t capture;           /* id of the capture it was recorded in, else 0 */
    struct dependencies after;  /* the captured nodes that it marks */
    struct event *next_pending, *previous_pending;
};

/* Completes the events pending on a stream (0: on all). */
void events_complete(uint64_t stream);
bool events_pending(uint64_t stream);

void events_forget(void);

#endif

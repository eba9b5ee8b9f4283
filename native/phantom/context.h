/* Driver contexts: the primary one of each device, and which is current for a thread. */
#ifndef HOTBED_PHANTOM_CONTEXT_H
#define HOTBED_PHANTOM_CONTEXT_H

void *context_of(int device);

#endif

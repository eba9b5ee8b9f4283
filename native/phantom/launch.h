/* Work of unknown content on a stream: kernels, and calls into libraries. */
#ifndef HOTBED_PHANTOM_LAUNCH_H
#define HOTBED_PHANTOM_LAUNCH_H

/* Puts a kernel on the stream with this handle, of this thread's device. Needs the lock. */
int device_work(void *stream);

#endif

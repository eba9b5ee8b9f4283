/* What a program is told when it reads device memory: certain values, answers handed over for the call in progress,
 * answers learnt in an earlier run, or zeros. Everything here needs the lock over the state. */
#ifndef HOTBED_PHANTOM_READS_H
#define HOTBED_PHANTOM_READS_H

#include <stdint.h>

/* One read by the calling thread: fills `to`, without gaps, with `height` rows of `width` bytes that lie `pitch` apart
 * from the device address `from` on. */
void reads_answer(void *to, uint64_t from, uint64_t width, uint64_t height, uint64_t pitch);

/* A forked child reads for itself: no log, no answers, no stop. */
void reads_forget(void);

#endif

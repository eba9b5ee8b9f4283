/* Device bytes that the host wrote and that nothing can have changed since: copies from the host, fills, and copies of
 * both. A kernel or a library call may write anywhere, so each of them makes every byte uncertain again. */
#ifndef HOTBED_PHANTOM_VALUES_H
#define HOTBED_PHANTOM_VALUES_H

#include <stdbool.h>
#include <stdint.h>

extern uint64_t values_epoch;

/* Every kernel launch, graph launch and call into a library calls this: values written before it are uncertain. */
static inline void values_launch(void) {
    __atomic_fetch_add(&values_epoch, 1, __ATOMIC_RELAXED);
}

/* The host writes / a fill writes a pattern of four bytes that repeats at multiples of four. */
void values_write(uint64_t to, const void *from, uint64_t size);
void values_fill(uint64_t to, uint32_t pattern, uint64_t size);

/* The device copies: `to` is as certain as `from` was. Collectives that hand on data use it too. */
void values_copy(uint64_t to, uint64_t from, uint64_t size);

/* Nothing is known of this range any more: its memory is gone, or was written by something unseen. */
void values_drop(uint64_t address, uint64_t size);

/* Copies the range to `to` if every byte of it is certain. */
bool values_read(uint64_t from, void *to, uint64_t size);

/* All of these need the lock over the state. */
#endif

/* Which library calls: one that brings its own CUDA runtime is seen nowhere else. */
#ifndef HOTBED_PHANTOM_CALLER_H
#define HOTBED_PHANTOM_CALLER_H

/* Notes the use of a library without a model, where `address` is code of one. */
void caller_note(const void *address);

#endif

/* Seeds that a program draws on the device and reads back, as torch does for the dropout of recurrent layers. Nobody
 * can say what such a draw gives on a card, and any number is right: the phantom draws one, and the bytes are certain. */
#ifndef HOTBED_PHANTOM_SEED_H
#define HOTBED_PHANTOM_SEED_H

/* A kernel of this mangled name was registered. */
void seed_register(const void *function, const char *name);

/* `function` has run with these arguments, outside of a capture; needs the lock over the state. */
void seed_launched(const void *function, void **arguments);

#endif

/* The end of everything behind handles, for a forked child. */
#ifndef HOTBED_PHANTOM_OBJECTS_H
#define HOTBED_PHANTOM_OBJECTS_H

void objects_forget(void);

#endif

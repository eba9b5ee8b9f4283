/* Which processes have used a phantom GPU. */
#ifndef HOTBED_PHANTOM_USERS_H
#define HOTBED_PHANTOM_USERS_H

/* Leaves an empty file "gpu-user.PID" in the folder that HOTBED_PHANTOM_USERS names, where it names one. */
void users_note(void);

#endif

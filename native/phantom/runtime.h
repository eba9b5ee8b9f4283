/* Which CUDA runtime the program was built for: one phantom serves CUDA 12 and 13. */
#ifndef HOTBED_PHANTOM_RUNTIME_H
#define HOTBED_PHANTOM_RUNTIME_H

/* 12 or 13, from the libcudart.so that something in the program is linked with; 13 if nothing is. */
int runtime_major(void);

#endif

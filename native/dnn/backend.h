/* The two ways to answer the backend interface; the signatures are cuDNN's. */
#ifndef HOTBED_DNN_BACKEND_H
#define HOTBED_DNN_BACKEND_H

#include <stdint.h>

/* By the user's own cuDNN, told which device to think of. */
int forward_create(int kind, void **out);
int forward_destroy(void *descriptor);
int forward_set(void *descriptor, int attribute, int type, int64_t count, const void *values);
int forward_get(void *descriptor, int attribute, int type, int64_t room, int64_t *count, void *values);
int forward_finalize(void *descriptor);
int forward_execute(void *plan, void *pack);

/* By descriptors that keep what they are told, and workspaces by rule of thumb. */
int store_create(int kind, void **out);
int store_destroy(void *descriptor);
int store_set(void *descriptor, int attribute, int type, int64_t count, const void *values);
int store_get(void *descriptor, int attribute, int type, int64_t room, int64_t *count, void *values);
int store_finalize(void *descriptor);
int store_execute(void *plan, void *pack);

#endif

/* Workspaces by rule of thumb, for a cuDNN that cannot be asked. */
#ifndef HOTBED_DNN_RULE_H
#define HOTBED_DNN_RULE_H

#include <stdint.h>

enum { RULE_DIMENSIONS = 8 };

struct rule_tensor {
    int element; /* enum dnn_element */
    int count;   /* dimensions */
    int64_t sizes[RULE_DIMENSIONS], strides[RULE_DIMENSIONS];
};

/* Bytes for a convolution of `x` with `w` to `y`; `pointwise`: all its strides are 1. */
int64_t rule_convolution(const struct rule_tensor *x, const struct rule_tensor *w, const struct rule_tensor *y,
                         int pointwise);

/* Bytes of one element. */
int rule_element_bytes(int element);

#endif

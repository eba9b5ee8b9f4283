#include "rule.h"

#include "facts.h"

int rule_element_bytes(int element) {
    return element == DNN_DOUBLE ? 8 : element == DNN_HALF || element == DNN_BFLOAT16 ? 2 : 4;
}

static int64_t product(const struct rule_tensor *tensor, int from) {
    int64_t result = 1;
    for (int i = from; i < tensor->count; i++)
        result *= tensor->sizes[i];
    return result;
}

static int64_t padded(int64_t channels, int element_bytes) {
    int64_t step = element_bytes == 2 ? 8 : 4;
    return (channels + step - 1) / step * step;
}

/* Read off traces of an H200 with cuDNN 9.19: kernels for tensor cores want channels last, and convert what comes in
 * another order in the workspace; a 1x1 convolution is a matrix product with a few hundred bytes. */
int64_t rule_convolution(const struct rule_tensor *x, const struct rule_tensor *w, const struct rule_tensor *y,
                         int pointwise) {
    int bytes = rule_element_bytes(x->element);
    if (x->count < 3 || x->strides[1] == 1 || x->sizes[1] == 1 || w->sizes[1] != x->sizes[1])
        return 0;
    if (pointwise && product(w, 2) == 1)
        return bytes == 4 ? 400 : 272;
    int64_t in = padded(x->sizes[1], bytes), out = padded(y->sizes[1], bytes);
    return bytes * (x->sizes[0] * in * product(x, 2) + y->sizes[0] * out * product(y, 2) + in * out * product(w, 2)) +
           16;
}

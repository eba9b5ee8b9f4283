/* The user's own cuDNN, which answers what needs no GPU. */
#ifndef HOTBED_DNN_REAL_H
#define HOTBED_DNN_REAL_H

#include <stddef.h>

/* The function called `name` of libcudnn.so.9; NULL if there is no such library or function. */
void *real_function(const char *name);

/* cudnnGetVersion() of that library, e.g. 91900; 0 without one. */
size_t real_version(void);

/* "9.19.0" for remarks; valid until the process ends. */
const char *real_version_text(void);

/* Looks a function up once for each place of use. `type` is its function pointer type. */
#define REAL(type, name)                                                                                           \
    __extension__({                                                                                                \
        static _Atomic(type) known;                                                                                \
        type function = known;                                                                                     \
        if (!function)                                                                                             \
            known = function = (type)real_function(name);                                                          \
        function;                                                                                                  \
    })

/* The backend interface of the real library. All of them are there, or `ready` is 0. */
struct backend {
    int ready;
    int (*create)(int kind, void **descriptor);
    int (*destroy)(void *descriptor);
    int (*set)(void *descriptor, int attribute, int type, long long count, const void *values);
    int (*get)(void *descriptor, int attribute, int type, long long room, long long *count, void *values);
    int (*finalize)(void *descriptor);
};

const struct backend *real_backend(void);

#endif

/* The whole test framework: a check that says where it failed. */
#ifndef HOTBED_CHECK_H
#define HOTBED_CHECK_H

#include <stdio.h>
#include <stdlib.h>

#define CHECK(condition)                                                                                           \
    do {                                                                                                           \
        if (!(condition)) {                                                                                        \
            fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #condition);                               \
            exit(1);                                                                                               \
        }                                                                                                          \
    } while (0)

#define CHECK_EQUAL(found, wanted)                                                                                 \
    do {                                                                                                           \
        long long found_ = (long long)(found), wanted_ = (long long)(wanted);                                      \
        if (found_ != wanted_) {                                                                                   \
            fprintf(stderr, "%s:%d: %s is %lld, not %lld\n", __FILE__, __LINE__, #found, found_, wanted_);          \
            exit(1);                                                                                               \
        }                                                                                                          \
    } while (0)

#endif

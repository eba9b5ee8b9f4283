/* The functions of legacy.def. */
#include "api.h"
#include "facts.h"
#include "real.h"
#include "usage.h"

#define HOST(name, parameters, arguments)                                                                          \
    PHANTOM_API int name parameters {                                                                              \
        int(*function) parameters = (int(*) parameters)real_function(#name);                                       \
        return function ? function arguments : DNN_NOT_INITIALIZED;                                                \
    }

/* The parameters that are neither workspace nor its size are of no interest here. */
#define WORK(name, parameters, workspace, bytes)                                                                   \
    PHANTOM_API int name parameters {                                                                              \
        usage_call(PHANTOM_CUDNN);                                                                                 \
        usage_workspace(PHANTOM_CUDNN, workspace, bytes, NULL);                                                    \
        return DNN_SUCCESS;                                                                                        \
    }

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"
#include "legacy.def"
#pragma GCC diagnostic pop

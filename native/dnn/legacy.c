/* The functions of legacy.def. */
#include "api.h"
#include "facts.h"
#include "real.h"
#include "unmodelled.h"
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

/* The user's own cuDNN would take the phantom's handle for one of its own. */
#define REFUSES(name)                                                                                              \
    STUB int name(void) {                                                                                          \
        return unmodelled_refuse(#name);                                                                           \
    }

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"
#include "legacy.def"
#pragma GCC diagnostic pop

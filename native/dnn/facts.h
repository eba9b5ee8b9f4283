/* Numbers of the cuDNN 9 interface that the phantom has to know: status codes, kinds of descriptors, attributes. */
#ifndef HOTBED_DNN_FACTS_H
#define HOTBED_DNN_FACTS_H

enum dnn_status {
    DNN_SUCCESS = 0,
    DNN_NOT_INITIALIZED = 1001,
    DNN_BAD_PARAM = 2000,
    DNN_NOT_SUPPORTED = 3000,
    DNN_ALLOCATION_FAILED = 4003,
};

/* Kinds of backend descriptors. */
enum dnn_kind {
    DNN_ENGINE = 2,
    DNN_ENGINE_CONFIG = 3,
    DNN_HEURISTICS = 4,
    DNN_PLAN = 5,
    DNN_CONVOLUTION_FORWARD = 10,
    DNN_CONVOLUTION_FILTER = 11,
    DNN_CONVOLUTION_DATA = 12,
    DNN_GRAPH = 15,
    DNN_VARIANT_PACK = 16,
    DNN_DEVICE_PROPERTIES = 38,
};

enum dnn_attribute {
    DNN_CONVOLUTION_STRIDES = 103,
    DNN_HEURISTICS_MODE = 200,
    DNN_HEURISTICS_GRAPH = 201,
    DNN_HEURISTICS_RESULTS = 202,
    DNN_HEURISTICS_SM_TARGET = 203,
    DNN_HEURISTICS_DEVICE = 204,
    DNN_CONFIG_ENGINE = 300,
    DNN_CONFIG_WORKSPACE = 303,
    DNN_CONFIG_SHARED_MEMORY = 304,
    DNN_PLAN_HANDLE = 400,
    DNN_PLAN_CONFIG = 401,
    DNN_PLAN_WORKSPACE = 402,
    DNN_PLAN_DEVICE = 407,
    DNN_FORWARD_CONVOLUTION = 702, /* then its w, x, y; likewise for the other two */
    DNN_DATA_CONVOLUTION = 708,
    DNN_FILTER_CONVOLUTION = 714,
    DNN_GRAPH_HANDLE = 800,
    DNN_GRAPH_OPERATIONS = 801,
    DNN_GRAPH_ENGINES = 802,
    DNN_TENSOR_TYPE = 901,
    DNN_TENSOR_SIZES = 902,
    DNN_TENSOR_STRIDES = 903,
    DNN_PACK_WORKSPACE = 1003,
    DNN_ENGINE_GRAPH = 1300,
    DNN_ENGINE_INDEX = 1301,
    DNN_ENGINE_NUMERICAL_NOTE = 1303,
    DNN_ENGINE_BEHAVIOR_NOTE = 1305,
    DNN_ENGINE_DEVICE = 1307,
    DNN_DEVICE_JSON = 2702,
};

/* Types of attribute elements. */
enum dnn_type {
    DNN_TYPE_HANDLE = 0,
    DNN_TYPE_BOOLEAN = 2,
    DNN_TYPE_INT64 = 3,
    DNN_TYPE_DOUBLE = 5,
    DNN_TYPE_POINTER = 6,
    DNN_TYPE_HEURISTICS_MODE = 8,
    DNN_TYPE_NUMERICAL_NOTE = 11,
    DNN_TYPE_DESCRIPTOR = 15,
    DNN_TYPE_BEHAVIOR_NOTE = 19,
    DNN_TYPE_INT32 = 23,
    DNN_TYPE_CHAR = 24,
    DNN_TYPE_FRACTION = 26,
};

/* Behaviour note of engines that compile their kernel when a plan is finalized. */
enum { DNN_RUNTIME_COMPILATION = 0 };

/* Types of tensor elements. */
enum dnn_element { DNN_FLOAT = 0, DNN_DOUBLE = 1, DNN_HALF = 2, DNN_BFLOAT16 = 9 };

#endif

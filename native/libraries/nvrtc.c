/* NVRTC: a program compiles at once to code without content; the names of its kernels stay as they are. */
#include "runtime.h"
#include "stand_in.h"

#include <stdlib.h>
#include <string.h>

#define LIBRARY PHANTOM_NVRTC
#include "nvrtc.def"

enum { NVRTC_OUT_OF_MEMORY = 1, NVRTC_INVALID_INPUT = 3, NVRTC_INVALID_PROGRAM = 4, NVRTC_NAME_NOT_VALID = 10 };

struct expression {
    struct expression *next;
    char text[];
};

struct program {
    struct expression *expressions;
};

PHANTOM_API int nvrtcCreateProgram(struct program **out, const char *source, const char *name, int headers,
                                   const char *const *header_texts, const char *const *header_names) {
    (void)name, (void)headers, (void)header_texts, (void)header_names;
    usage_call(LIBRARY);
    if (!out || !source)
        return NVRTC_INVALID_INPUT;
    *out = calloc(1, sizeof **out);
    return *out ? SUCCESS : NVRTC_OUT_OF_MEMORY;
}

PHANTOM_API int nvrtcDestroyProgram(struct program **program) {
    if (!program || !*program)
        return NVRTC_INVALID_PROGRAM;
    for (struct expression *next, *at = (*program)->expressions; at; at = next) {
        next = at->next;
        free(at);
    }
    free(*program);
    *program = NULL;
    return SUCCESS;
}

PHANTOM_API int nvrtcAddNameExpression(struct program *program, const char *text) {
    if (!program || !text)
        return NVRTC_INVALID_INPUT;
    size_t bytes = strlen(text) + 1;
    struct expression *expression = malloc(sizeof *expression + bytes);
    if (!expression)
        return NVRTC_OUT_OF_MEMORY;
    memcpy(expression->text, text, bytes);
    expression->next = program->expressions;
    program->expressions = expression;
    return SUCCESS;
}

PHANTOM_API int nvrtcGetLoweredName(struct program *program, const char *text, const char **out) {
    if (!program || !text || !out)
        return NVRTC_INVALID_INPUT;
    const struct expression *at = program->expressions;
    while (at && strcmp(at->text, text))
        at = at->next;
    *out = at ? at->text : NULL;
    return at ? SUCCESS : NVRTC_NAME_NOT_VALID;
}

/* Every form of the code is this text; nobody but cuModuleLoadData is given it. */
static const char CODE[] = ".version 8.0\n.target sm_90\n.address_size 64\n";

static int size(const struct program *program, size_t bytes, size_t *out) {
    if (!program || !out)
        return NVRTC_INVALID_INPUT;
    *out = bytes;
    return SUCCESS;
}

static int content(const struct program *program, const char *text, size_t bytes, char *out) {
    if (!program || !out)
        return NVRTC_INVALID_INPUT;
    memcpy(out, text, bytes);
    return SUCCESS;
}

#define FORM(form, text)                                                                                           \
    PHANTOM_API int nvrtcGet##form##Size(struct program *program, size_t *out) {                                   \
        return size(program, sizeof text, out);                                                                    \
    }                                                                                                              \
    PHANTOM_API int nvrtcGet##form(struct program *program, char *out) {                                           \
        return content(program, text, sizeof text, out);                                                           \
    }

FORM(PTX, CODE)
FORM(CUBIN, CODE)
FORM(LTOIR, CODE)
FORM(OptiXIR, CODE)
FORM(NVVM, CODE)
FORM(ProgramLog, "")

PHANTOM_API int nvrtcVersion(int *major, int *minor) {
    if (!major || !minor)
        return NVRTC_INVALID_INPUT;
    *major = runtime_major();
    *minor = *major < 13 ? 8 : 0;
    return SUCCESS;
}

static const int ARCHITECTURES[] = {75, 80, 86, 87, 89, 90, 100, 103, 120};

PHANTOM_API int nvrtcGetNumSupportedArchs(int *out) {
    if (!out)
        return NVRTC_INVALID_INPUT;
    *out = sizeof ARCHITECTURES / sizeof *ARCHITECTURES;
    return SUCCESS;
}

PHANTOM_API int nvrtcGetSupportedArchs(int *out) {
    if (!out)
        return NVRTC_INVALID_INPUT;
    memcpy(out, ARCHITECTURES, sizeof ARCHITECTURES);
    return SUCCESS;
}

PHANTOM_API const char *nvrtcGetErrorString(int code) {
    switch (code) {
    case SUCCESS: return "NVRTC_SUCCESS";
    case NVRTC_OUT_OF_MEMORY: return "NVRTC_ERROR_OUT_OF_MEMORY";
    case NVRTC_INVALID_INPUT: return "NVRTC_ERROR_INVALID_INPUT";
    case NVRTC_INVALID_PROGRAM: return "NVRTC_ERROR_INVALID_PROGRAM";
    case NVRTC_NAME_NOT_VALID: return "NVRTC_ERROR_NAME_EXPRESSION_NOT_VALID";
    default: return "NVRTC_ERROR unknown";
    }
}

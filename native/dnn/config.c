#include "config.h"

#include "facts.h"
#include "real.h"

#include <stddef.h>

enum { NOTES = 32 };

uint32_t config_note_bits(const int *notes, int64_t count) {
    uint32_t result = 0;
    for (int64_t i = 0; i < count; i++)
        if (notes[i] >= 0 && notes[i] < NOTES)
            result |= (uint32_t)1 << notes[i];
    return result;
}

static uint32_t notes(void *config, int attribute, int type) {
    const struct backend *real = real_backend();
    void *engine = NULL;
    int values[NOTES];
    long long count = 0;
    if (real->create(DNN_ENGINE, &engine))
        return 0;
    if (real->get(config, DNN_CONFIG_ENGINE, DNN_TYPE_DESCRIPTOR, 1, &count, &engine) ||
        real->get(engine, attribute, type, NOTES, &count, values))
        count = 0;
    real->destroy(engine);
    return config_note_bits(values, count < NOTES ? count : NOTES);
}

uint32_t config_numerical_notes(void *config) {
    return notes(config, DNN_ENGINE_NUMERICAL_NOTE, DNN_TYPE_NUMERICAL_NOTE);
}

uint32_t config_behavior_notes(void *config) {
    return notes(config, DNN_ENGINE_BEHAVIOR_NOTE, DNN_TYPE_BEHAVIOR_NOTE);
}

int64_t config_workspace(void *config) {
    int64_t bytes = -1;
    long long count = 0;
    return real_backend()->get(config, DNN_CONFIG_WORKSPACE, DNN_TYPE_INT64, 1, &count, &bytes) ? -1 : bytes;
}

int config_compiles(void *config) {
    return config_behavior_notes(config) >> DNN_RUNTIME_COMPILATION & 1;
}

#include "stand_in.h"

#include "launch.h"
#include "memory.h"

#include <string.h>

/* Behind a handle of a library. */
struct library_object {
    struct object object;
    enum phantom_library library;
    uint64_t field[FIELDS];
};

uint64_t *stand_in_fields(enum phantom_library library, uint64_t handle) {
    struct library_object *object = book_find(&phantom.objects, handle, LIBRARY_OBJECT);
    return object && object->library == library ? object->field : NULL;
}

int stand_in_create(enum phantom_library library, struct status status, uint64_t out) {
    enter();
    struct library_object *object = out ? book_new(&phantom.objects, LIBRARY_OBJECT, sizeof *object) : NULL;
    if (object) {
        device_touch(device_now());
        object->library = library;
        *(uint64_t *)out = object->object.handle;
    }
    return leave(object ? SUCCESS : status.not_initialized);
}

int stand_in_destroy(enum phantom_library library, struct status status, uint64_t handle) {
    enter();
    bool known = stand_in_fields(library, handle);
    if (known)
        book_delete(&phantom.objects, book_find(&phantom.objects, handle, LIBRARY_OBJECT));
    return leave(known ? SUCCESS : status.not_initialized);
}

int stand_in_set(enum phantom_library library, struct status status, uint64_t handle, int field, uint64_t value) {
    enter();
    uint64_t *fields = stand_in_fields(library, handle);
    if (fields)
        fields[field] = value;
    return leave(fields ? SUCCESS : status.not_initialized);
}

int stand_in_get(enum phantom_library library, struct status status, uint64_t handle, int field, uint64_t out,
                 uint64_t bytes) {
    enter();
    const uint64_t *fields = stand_in_fields(library, handle);
    uint64_t value = fields ? fields[field] : 0;
    leave(SUCCESS);
    stand_in_put(out, value, bytes);
    return fields ? SUCCESS : status.not_initialized;
}

int stand_in_work_on(struct status status, uint64_t stream) {
    return DRIVER(device_work((void *)stream)) ? status.execution_failed : SUCCESS;
}

int stand_in_work(enum phantom_library library, struct status status, uint64_t handle) {
    enter();
    const uint64_t *fields = stand_in_fields(library, handle);
    int code = fields ? device_work((void *)fields[STREAM_FIELD]) : SUCCESS;
    leave(SUCCESS);
    return !fields ? status.not_initialized : code ? status.execution_failed : SUCCESS;
}

static bool host_may_write(uint64_t address) {
    enter();
    const struct memory *memory = memory_around(address);
    bool writable = address && (!memory || memory_is_host(memory));
    leave(SUCCESS);
    return writable;
}

void stand_in_zero(uint64_t out, uint64_t bytes) {
    if (host_may_write(out))
        memset((void *)out, 0, bytes);
}

void stand_in_put(uint64_t out, uint64_t value, uint64_t bytes) {
    if (host_may_write(out))
        memcpy((void *)out, &value, bytes); /* both machines that CUDA runs on are little-endian */
}

int stand_in_remark_size(const char *function) {
    usage_remark("the workspace that %s asks for is not modelled: what torch allocates for it is left out", function);
    return SUCCESS;
}

int stand_in_property(const int version[3], int property, uint64_t out, int invalid) {
    if (!out || property < 0 || property > 2)
        return invalid;
    *(int *)out = version[property];
    return SUCCESS;
}

uint64_t data_type_bytes(int type) {
    switch (type) {
    case 3: case 8: case 16: case 17: case 18: case 19:          /* integers of at most 8 bits */
    case 28: case 29: case 30: case 31: case 32: case 33: return 1; /* floats likewise */
    case 2: case 7: case 9: case 14: case 20: case 22: return 2;
    case 0: case 6: case 10: case 12: case 15: case 21: case 23: return 4;
    case 1: case 4: case 11: case 13: case 24: case 26: return 8;
    default: return 16;
    }
}

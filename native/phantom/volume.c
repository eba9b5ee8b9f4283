/* Memory with a pitch and in three dimensions, out of the plain calls. */
#include "api.h"

#include <stdint.h>

int cudaMalloc(void **out, size_t size);
int cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height,
                      int direction, void *stream);
int cudaMemsetAsync(void *to, int value, size_t size, void *stream);

enum { PITCH = 512 };

struct extent {
    size_t width, height, depth;
};

struct pitched {
    char *address;
    size_t pitch, width, height;
};

/* What is copied from where to where: an array on a side goes before a pointer. */
struct volume_copy {
    void *from_array;
    struct extent from_at;
    struct pitched from;
    void *to_array;
    struct extent to_at;
    struct pitched to;
    struct extent size;
    int direction;
};

PHANTOM_API int cudaMallocPitch(void **out, size_t *pitch, size_t width, size_t height) {
    if (!out || !pitch || width > SIZE_MAX - PITCH)
        return remember(INVALID_VALUE);
    *pitch = (width + PITCH - 1) / PITCH * PITCH;
    return cudaMalloc(out, *pitch * height);
}

PHANTOM_API int cudaMalloc3D(struct pitched *out, struct extent size) {
    if (!out)
        return remember(INVALID_VALUE);
    out->width = size.width;
    out->height = size.height;
    return cudaMallocPitch((void **)&out->address, &out->pitch, size.width, size.height * size.depth);
}

static char *corner(const struct pitched *memory, const struct extent *at, size_t slice) {
    return memory->address + ((at->depth + slice) * memory->height + at->height) * memory->pitch + at->width;
}

PHANTOM_API int cudaMemcpy3DAsync(const struct volume_copy *copy, void *stream) {
    if (!copy)
        return remember(INVALID_VALUE);
    if (copy->from_array || copy->to_array)
        return remember(NOT_SUPPORTED);
    int code = SUCCESS;
    for (size_t i = 0; i < copy->size.depth && !code; i++)
        code = cudaMemcpy2DAsync(corner(&copy->to, &copy->to_at, i), copy->to.pitch,
                                 corner(&copy->from, &copy->from_at, i), copy->from.pitch, copy->size.width,
                                 copy->size.height, copy->direction, stream);
    return code;
}

PHANTOM_API int cudaMemcpy3D(const struct volume_copy *copy) {
    return cudaMemcpy3DAsync(copy, NULL);
}

PHANTOM_API int cudaMemset2DAsync(char *to, size_t pitch, int value, size_t width, size_t height, void *stream) {
    int code = SUCCESS;
    for (size_t i = 0; i < height && !code; i++)
        code = cudaMemsetAsync(to + i * pitch, value, width, stream);
    return code;
}

PHANTOM_API int cudaMemset2D(char *to, size_t pitch, int value, size_t width, size_t height) {
    return cudaMemset2DAsync(to, pitch, value, width, height, NULL);
}

PHANTOM_API int cudaMemset3DAsync(struct pitched to, int value, struct extent size, void *stream) {
    int code = SUCCESS;
    for (size_t i = 0; i < size.depth && !code; i++)
        code = cudaMemset2DAsync(to.address + i * to.pitch * to.height, to.pitch, value, size.width, size.height,
                                 stream);
    return code;
}

PHANTOM_API int cudaMemset3D(struct pitched to, int value, struct extent size) {
    return cudaMemset3DAsync(to, value, size, NULL);
}

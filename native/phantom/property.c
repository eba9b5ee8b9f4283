/* cudaGetDeviceProperties. CUDA 12 calls the function with suffix _v2 and has eight members more than CUDA 13, so a
 * member lies at two offsets. */
#include "device.h"
#include "state.h"

#include <string.h>

enum { BYTES_12 = 1032, BYTES_13 = 1008, UUID_OFFSET = 256 };

/* int members: offset in CUDA 12, in CUDA 13, attribute that has the value. */
static const struct {
    short at_12, at_13, attribute;
} integers[] = {
    {304, 304, 12},  {308, 308, 10},  {320, 320, 1},   {324, 324, 2},   {328, 328, 3},   {332, 332, 4},
    {336, 336, 5},   {340, 340, 6},   {344, 344, 7},   {360, 360, 75},  {364, 364, 76},  {388, 384, 16},
    {396, 388, 18},  {400, 392, 19},  {576, 560, 31},  {580, 564, 32},  {584, 568, 33},  {600, 584, 40},
    {604, 588, 41},  {612, 592, 37},  {616, 596, 38},  {620, 600, 108}, {624, 604, 39},  {628, 608, 78},
    {632, 612, 79},  {636, 616, 80},   {648, 632, 82},  {652, 636, 83},  {656, 640, 84},  {672, 652, 88},  {676, 656, 89},
    {680, 660, 90},  {684, 664, 91},  {688, 668, 95},  {712, 688, 106}, {716, 692, 109}, {728, 704, 99},
    {744, 720, 115}, {772, 748, 120}, {732, 708, 113}, {776, 752, 129},
};

/* size_t members likewise. */
static const struct {
    short at_12, at_13, attribute;
} sizes[] = {
    {296, 296, 8},  {312, 312, 11}, {352, 352, 9},  {368, 368, 14},  {376, 376, 51},
    {568, 552, 30}, {640, 624, 81}, {696, 672, 97}, {720, 696, 111},
};

enum { TOTAL_OFFSET = 288, CLOCK_12 = 348, MEMORY_CLOCK_12 = 608 };

static void put_int(char *at, int value) {
    memcpy(at, &value, sizeof value);
}

static void put_size(char *at, size_t value) {
    memcpy(at, &value, sizeof value);
}

static int fill(char *out, int device, bool cuda_12) {
    if (!out)
        return INVALID_VALUE;
    if (!device_exists(device))
        return INVALID_DEVICE;
    memset(out, 0, cuda_12 ? BYTES_12 : BYTES_13);
    strcpy(out, phantom.spec.name);
    spec_uuid_bytes(phantom.spec.visible[device], (unsigned char *)out + UUID_OFFSET);
    put_size(out + TOTAL_OFFSET, phantom.spec.total);
    for (size_t i = 0; i < sizeof integers / sizeof *integers; i++)
        put_int(out + (cuda_12 ? integers[i].at_12 : integers[i].at_13),
                device_attribute(device, integers[i].attribute));
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        put_size(out + (cuda_12 ? sizes[i].at_12 : sizes[i].at_13),
                 (size_t)device_attribute(device, sizes[i].attribute));
    if (cuda_12) {
        put_int(out + CLOCK_12, phantom.spec.clock);
        put_int(out + MEMORY_CLOCK_12, phantom.spec.memory_clock);
    }
    return SUCCESS;
}

PHANTOM_API int cudaGetDeviceProperties(void *out, int device) {
    return RUNTIME(fill(out, device, false));
}

PHANTOM_API int cudaGetDeviceProperties_v2(void *out, int device) {
    return RUNTIME(fill(out, device, true));
}

/* What the host writes can be read back until a kernel may have changed it, against a plain copy of the memory. */
#include "check.h"
#include "cuda.h"
#include "phantom.h"

#include <string.h>

enum { TO_DEVICE = 1, TO_HOST = 2, ON_DEVICE = 3, SIZE = 3000, STEPS = 30000 };

struct size3 {
    unsigned x, y, z;
};
int cudaLaunchKernel(const void *function, struct size3 grid, struct size3 block, void **arguments, size_t shared,
                     void *stream);
void __cudaRegisterFunction(void **binary, const char *function, char *code, const char *name, int thread_limit,
                            void *thread, void *block, void *block_size, void *grid_size, int *warp_size);
int cudaMemset(void *to, int value, size_t size);
int cudaMemcpy2D(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height,
                 int direction);
int cuMemsetD32Async(uint64_t to, unsigned value, size_t count, void *stream);

static void launch(void) {
    struct size3 one = {1, 1, 1};
    CHECK_EQUAL(cudaLaunchKernel(NULL, one, one, NULL, 0, NULL), 0);
}

/* Random writes, fills and copies within one allocation against an array; `known` says which bytes are certain. */
static void agrees_with_memory(void) {
    static unsigned char memory[SIZE], known[SIZE], bytes[SIZE];
    char *device;
    CHECK_EQUAL(cudaMalloc((void **)&device, SIZE), 0);
    for (int step = 0; step < STEPS; step++) {
        size_t at = (size_t)rand() % SIZE, other = (size_t)rand() % SIZE, size = (size_t)rand() % 200 + 1;
        size_t end = at > other ? at : other;
        size = end + size > SIZE ? SIZE - end : size;
        int action = rand() % 5, value = rand() % 256;
        if (action == 0) {
            memset(bytes, value, size);
            CHECK_EQUAL(cudaMemcpy(device + at, bytes, size, TO_DEVICE), 0);
        } else if (action == 1) {
            CHECK_EQUAL(cudaMemset(device + at, value, size), 0);
        } else if (action == 2) {
            memcpy(bytes, memory + other, size);
            CHECK_EQUAL(cudaMemcpy(device + at, device + other, size, ON_DEVICE), 0);
            int all = !memchr(known + other, 0, size);
            memmove(memory + at, bytes, size);
            memset(known + at, all, size);
        } else {
            int certain = phantom_certain((uint64_t)device + at, bytes, size);
            CHECK_EQUAL(certain, !memchr(known + at, 0, size));
            CHECK(!certain || !memcmp(bytes, memory + at, size));
        }
        if (action < 2) {
            memset(memory + at, value, size);
            memset(known + at, 1, size);
        }
        if (step % 5000 == 4999) {
            launch();
            memset(known, 0, SIZE);
        }
    }
    CHECK_EQUAL(cudaFree(device), 0);
    CHECK_EQUAL(phantom_certain((uint64_t)device, bytes, 1), 0);
}

static void fills_with_words_and_reads_rows(void) {
    unsigned words[6] = {0}, *device;
    CHECK_EQUAL(cudaMalloc((void **)&device, sizeof words), 0);
    CHECK_EQUAL(cuMemsetD32Async((uint64_t)device, 0x01020304, 6, NULL), 0);
    CHECK_EQUAL(cudaMemset(device + 1, 7, 4), 0);
    CHECK_EQUAL(cudaMemcpy2D(words, 12, device, 8, 8, 2, TO_HOST), 0);
    CHECK_EQUAL(words[0], 0x01020304);
    CHECK_EQUAL(words[1], 0x07070707);
    CHECK_EQUAL(words[2], 0);
    CHECK_EQUAL(words[3], 0x01020304);
    CHECK_EQUAL(cudaFree(device), 0);
}

/* What torch's random_() launches, in both forms of its last argument; only a single number is a seed. */
static void seeds_are_certain(void) {
    static const char *const names[] = {
        "distribution_elementwise_grid_stride_kernel13random_kernel_27distribution_nullary_kernelIlm_EUlimE_EEv",
        "distribution_elementwise_grid_stride_kernel13random_kernel_27distribution_nullary_kernelIlm_EUlimE0_EEv"};
    static const char stubs[2];
    struct size3 one = {1, 1, 1};
    int64_t count = 1, first = -1, second = -1, bytes;
    char *device, written[416] = {0};
    void *arguments[] = {&count, NULL, NULL, written};
    CHECK_EQUAL(cudaMalloc((void **)&device, 64), 0);
    for (int form = 0; form < 2; form++)
        __cudaRegisterFunction(NULL, &stubs[form], NULL, names[form], -1, NULL, NULL, NULL, NULL, NULL);
    memcpy(written, &device, sizeof device);
    CHECK_EQUAL(cudaLaunchKernel(&stubs[0], one, one, arguments, 0, NULL), 0);
    CHECK_EQUAL(phantom_certain((uint64_t)device, &first, 8), 1);
    memset(written, 0, sizeof written);
    memcpy(written + 408, &device, sizeof device);
    CHECK_EQUAL(cudaLaunchKernel(&stubs[1], one, one, arguments, 0, NULL), 0);
    CHECK_EQUAL(phantom_certain((uint64_t)device, &second, 8), 1);
    CHECK(first >= 0 && second >= 0 && first != second);
    count = 2;
    CHECK_EQUAL(cudaLaunchKernel(&stubs[1], one, one, arguments, 0, NULL), 0);
    CHECK_EQUAL(phantom_certain((uint64_t)device, &bytes, 8), 0);
    CHECK_EQUAL(cudaFree(device), 0);
}

static long long read_number(const void *device, size_t size) {
    long long value = -1;
    memset(&value, 0, size);
    CHECK_EQUAL(cudaMemcpy(&value, device, size, TO_HOST), 0);
    return value;
}

/* Answers that were handed over, then the same reads from the log. */
static void answers_in_order(void) {
    static unsigned char log[4096];
    long long five = 5, million = 1000000;
    struct phantom_answer answers[] = {{&five, 8, 1}, {&million, 8, 0}};
    int32_t thread;
    void *device;
    CHECK_EQUAL(cudaMalloc(&device, 64), 0);
    launch();
    CHECK_EQUAL(read_number(device, 8), 0);
    phantom_log_reads(1);
    phantom_hand_answers(answers, 2);
    CHECK_EQUAL(read_number(device, 8), 5);
    CHECK_EQUAL(read_number(device, 8), million);
    CHECK_EQUAL(read_number(device, 8), million);
    phantom_hand_answers(answers, 1);
    CHECK_EQUAL((int)read_number(device, 4), 5);
    phantom_hand_answers(NULL, 0);
    CHECK_EQUAL(phantom_reads_so_far(&thread), 6); /* with the two rows of the test before, which are one read */
    CHECK_EQUAL(thread, 0);
    phantom_log_reads(0);
    int64_t size = phantom_read_log(log, sizeof log);
    CHECK_EQUAL(size, 4 * sizeof(struct phantom_read) + 8 + 8 + 8 + 4);
    CHECK_EQUAL(phantom_answer_reads(log, size - 1), -1);
    CHECK_EQUAL(phantom_answer_reads(log, size), 0);
    CHECK_EQUAL(read_number(device, 8), 5);
    CHECK_EQUAL((int)read_number(device, 4), 5); /* two reads have fallen away, or come later */
    CHECK_EQUAL(read_number(device, 8), million);
    CHECK_EQUAL(read_number(device, 8), million);
    CHECK_EQUAL(phantom_remark_count(), 0);
    CHECK_EQUAL(read_number(device, 8), 0);
    CHECK_EQUAL(phantom_remark_count(), 1);
}

int main(void) {
    srand(3);
    agrees_with_memory();
    fills_with_words_and_reads_rows();
    seeds_are_certain();
    answers_in_order();
    return 0;
}

#include "seed.h"

#include "memory.h"
#include "values.h"

#include <pthread.h>
#include <string.h>

/* The kernel behind torch's Tensor.random_() without bounds on 64-bit integers: how all random numbers are drawn, what
 * for, and the type of an element. Draws with bounds are other kernels: their numbers may be sizes. */
static const char *const parts[] = {"distribution_elementwise_grid_stride_kernel", "13random_kernel",
                                    "distribution_nullary_kernelIlm"};

/* Where in the last argument of either form the address of the first element lies: at its begin, or behind the sizes
 * and strides of up to 25 dimensions. */
static const struct {
    const char *part;
    int offset;
} forms[] = {{"EUlimE_EE", 0}, {"EUlimE0_EE", 408}};

enum { MOST_KERNELS = 32 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
    const void *function;
    int offset;
} kernels[MOST_KERNELS];
static int kernel_count; /* grows once its kernel is there */

static bool draws_seeds(const char *name) {
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (!strstr(name, parts[i]))
            return false;
    return true;
}

static void enter_kernel(const void *function, int offset) {
    pthread_mutex_lock(&lock);
    if (kernel_count < MOST_KERNELS) {
        kernels[kernel_count].function = function;
        kernels[kernel_count].offset = offset;
        __atomic_store_n(&kernel_count, kernel_count + 1, __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&lock);
}

void seed_register(const void *function, const char *name) {
    if (!name || !draws_seeds(name))
        return;
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        if (strstr(name, forms[i].part))
            enter_kernel(function, forms[i].offset);
}

/* Number of a registered kernel; -1 for others. */
static int number_of(const void *function) {
    int i = __atomic_load_n(&kernel_count, __ATOMIC_ACQUIRE);
    while (i-- > 0 && kernels[i].function != function)
        continue;
    return i;
}

/* splitmix64, in the range of random_(): 0 and up. */
static int64_t draw(void) {
    static uint64_t state;
    uint64_t mixed = state += 0x9e3779b97f4a7c15u;
    mixed = (mixed ^ mixed >> 30) * 0xbf58476d1ce4e5b9u;
    mixed = (mixed ^ mixed >> 27) * 0x94d049bb133111ebu;
    return (int64_t)((mixed ^ mixed >> 31) >> 1);
}

/* The kernel's arguments: the number of elements, the generator's state, how it draws, how it writes. */
void seed_launched(const void *function, void **arguments) {
    int number = number_of(function);
    if (number < 0 || !arguments || *(const int64_t *)arguments[0] != 1)
        return;
    uint64_t address;
    memcpy(&address, (const char *)arguments[3] + kernels[number].offset, sizeof address);
    const struct memory *memory = memory_around(address);
    if (memory && !memory_is_host(memory)) {
        int64_t seed = draw();
        values_write(address, &seed, sizeof seed);
    }
}

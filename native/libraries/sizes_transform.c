/* cuFFT's workspaces, as rules found in its answers on an H200 (CUDA 13.0, cuFFT 12.0) for 363 measured transforms and
 * 822 more plans. Equal to the byte for all powers of two and for every length above 32768. Between, a length is
 * done in one pass or in several for reasons that are not known: of 510 plans of one dimension 441 are equal, of 312 of
 * two 199. */
#include "sizes.h"

enum {
    ONE_PASS = 4096,        /* a longer complex transform is done in several passes */
    ONE_PASS_SIMPLE = 32768, /* the longest that may be done in one */
    ONE_PASS_REAL = 1024,
    ONE_PASS_ODD = 250,
    GREATEST_RADIX = 127, /* a greater prime factor makes it a convolution */
    GRAIN = 1024
};

static uint64_t most(uint64_t a, uint64_t b) {
    return a > b ? a : b;
}

static uint64_t rounded(uint64_t bytes) {
    return (bytes + GRAIN - 1) / GRAIN * GRAIN;
}

/* The prime factors of n: the greatest, and how many differ. */
struct factors {
    uint64_t greatest, different;
};

static struct factors factors_of(uint64_t n) {
    struct factors found = {1, 0};
    for (uint64_t p = 2; n > 1; p = p * p > n ? n : p + 1) {
        if (n % p)
            continue;
        found.greatest = p;
        found.different++;
        while (n % p == 0)
            n /= p;
    }
    return found;
}

static bool is_convolved(uint64_t n) {
    return n > ONE_PASS && factors_of(n).greatest > GREATEST_RADIX;
}

/* The length to which Bluestein's algorithm pads: the next without prime factors above 5. */
static uint64_t padded(uint64_t n) {
    for (uint64_t length = 2 * n - 1;; length++) {
        uint64_t rest = length;
        for (uint64_t p = 2; p <= 5; p++)
            while (rest % p == 0)
                rest /= p;
        if (rest == 1)
            return length;
    }
}

static uint64_t complex_lines(uint64_t n, uint64_t lines, uint64_t element) {
    struct factors factors = factors_of(n);
    bool simple = factors.different <= 2 && factors.greatest <= 7;
    if (is_convolved(n))
        return 2 * rounded(element * lines * padded(n));
    return n <= ONE_PASS || (simple && n <= ONE_PASS_SIMPLE) ? 0 : element * n * lines;
}

/* As complex_lines(), and a copy of the lines before it. */
static uint64_t convolved(uint64_t n, uint64_t lines, uint64_t element) {
    return element * n * lines + 2 * rounded(element * lines * padded(n) + 1);
}

/* Two real transforms of odd length make one of complex values; a line of even length makes one of half as many. */
static uint64_t real_lines(uint64_t n, uint64_t lines, uint64_t batch, uint64_t element) {
    if (n % 2) {
        uint64_t pairs = lines / batch * ((batch + 1) / 2), bytes = element * n * pairs;
        return n < ONE_PASS_ODD ? 0 : is_convolved(n) ? convolved(n, pairs, element) : bytes + rounded(bytes);
    }
    if (is_convolved(n / 2))
        return convolved(n / 2, lines, element);
    if (n <= ONE_PASS_REAL || (n <= ONE_PASS_SIMPLE && factors_of(n).different == 1))
        return 0;
    return element * (n / 2 + (n > ONE_PASS_SIMPLE)) * lines;
}

static bool is_sure(uint64_t n) {
    return n <= ONE_PASS_REAL || n > ONE_PASS_SIMPLE || factors_of(n).greatest == 2;
}

uint64_t sizes_transform(int rank, const int64_t *n, uint64_t batch, uint64_t element, bool real, bool *sure) {
    uint64_t last = (uint64_t)n[rank - 1], outer = batch, bytes = 0;
    for (int i = 0; i < rank - 1; i++)
        outer *= (uint64_t)n[i];
    uint64_t line = real ? last / 2 + 1 : last;
    *sure = is_sure(last);
    for (int i = 0; i < rank - 1; i++) {
        uint64_t size = (uint64_t)n[i];
        bytes = most(bytes, complex_lines(size, outer / size * line, element));
        *sure = *sure && factors_of(size).greatest <= 2;
    }
    return most(bytes, real ? real_lines(last, outer, batch, element) : complex_lines(last, outer, element));
}

/* The generator of random numbers that torch has on the CPU, MT19937 (Matsumoto and Nishimura, 1998): passes over
 * numbers that nobody looks at, faster than they could be drawn. */
#include "api.h"
#include "phantom.h"

enum { WORDS = 624, MIDDLE = 397 };

static uint32_t mixed(uint32_t high, uint32_t low, uint32_t far) {
    uint32_t joined = (high & 0x80000000u) | (low & 0x7fffffffu);
    return far ^ joined >> 1 ^ (0x9908b0dfu & -(low & 1));
}

/* The next 624 words of the sequence in the place of these. In the two loops no word depends on one that is near. */
static void go_on(uint32_t *words) {
    for (int i = 0; i < WORDS - MIDDLE; i++)
        words[i] = mixed(words[i], words[i + 1], words[i + MIDDLE]);
    for (int i = WORDS - MIDDLE; i < WORDS - 1; i++)
        words[i] = mixed(words[i], words[i + 1], words[i + MIDDLE - WORDS]);
    words[WORDS - 1] = mixed(words[WORDS - 1], words[0], words[MIDDLE - 1]);
}

PHANTOM_API void phantom_pass_over(struct phantom_twister *state, uint64_t draws) {
    uint64_t left = (uint64_t)(state->left - 1);
    if (draws <= left) {
        state->left -= (int32_t)draws;
        state->next += draws;
        return;
    }
    uint32_t words[WORDS];
    for (int i = 0; i < WORDS; i++)
        words[i] = (uint32_t)state->words[i];
    for (draws -= left; draws > WORDS; draws -= WORDS)
        go_on(words);
    go_on(words);
    for (int i = 0; i < WORDS; i++)
        state->words[i] = words[i];
    state->left = (int32_t)(WORDS + 1 - draws);
    state->next = draws;
}

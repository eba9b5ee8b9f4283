/* Passing over numbers gives the state that drawing them gives. */
#include "check.h"
#include "phantom.h"

#include <stdlib.h>

/* As MT19937 is seeded, and as torch keeps it: no word has been made yet. */
static struct phantom_twister seeded(uint32_t seed) {
    struct phantom_twister state = {.seed = seed, .left = 1, .seeded = 1};
    uint32_t word = seed;
    for (uint32_t i = 0; i < 624; i++) {
        state.words[i] = word;
        word = 1812433253u * (word ^ word >> 30) + i + 1;
    }
    return state;
}

static uint32_t draw(struct phantom_twister *state) {
    phantom_pass_over(state, 1);
    uint32_t word = (uint32_t)state->words[state->next - 1];
    word ^= word >> 11;
    word ^= word << 7 & 0x9d2c5680u;
    word ^= word << 15 & 0xefc60000u;
    return word ^ word >> 18;
}

/* The C++ standard (rand.predef): the 10000th number of mt19937, whose seed is 5489, is 4123659995. */
static void ends_at_the_number_of_the_standard(void) {
    struct phantom_twister state = seeded(5489);
    phantom_pass_over(&state, 9999);
    CHECK_EQUAL(draw(&state), 4123659995u);
}

static void steps_add_up(void) {
    struct phantom_twister once = seeded(7), often = seeded(7);
    uint64_t all = 0;
    for (int i = 0; i < 300; i++) {
        uint64_t some = i % 3 ? (uint64_t)rand() % 2000 : (uint64_t)(i % 2) * 624;
        phantom_pass_over(&often, some);
        all += some;
    }
    phantom_pass_over(&once, all);
    CHECK_EQUAL(once.left, often.left);
    CHECK_EQUAL(once.next, often.next);
    CHECK_EQUAL(draw(&once), draw(&often));
}

int main(void) {
    srand(5);
    ends_at_the_number_of_the_standard();
    steps_add_up();
    return 0;
}

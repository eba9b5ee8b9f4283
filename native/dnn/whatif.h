/* What a convolution's workspace would be under the other GPC layouts, found in the same run. */
#ifndef HOTBED_DNN_WHATIF_H
#define HOTBED_DNN_WHATIF_H

#include <stdint.h>

/* One question to cuDNN's heuristics: its answer under the likely layout is the program's, those under the other
 * layouts are kept here until the program uses a plan. */
struct search;

/* Asks under the other layouts too. `graph` is the operation graph of a convolution, `mode` the program's heuristic
 * mode. NULL without memory. The caller has one reference. */
struct search *search_begin(void *graph, int mode);
struct search *search_share(struct search *search);
void search_drop(struct search *search);

/* The program was told the numerical notes of result `index` / tried to make a plan of it. */
void search_note(struct search *search, int index, const int *notes, int64_t count);
void search_tried(struct search *search, int index);

/* The program runs the plan made of result `index`, which wants `bytes`. Writes what the other layouts would have
 * wanted. */
void search_run(struct search *search, int index, uint64_t bytes, uint64_t *alternatives);

#endif

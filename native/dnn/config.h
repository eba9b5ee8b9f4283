/* Questions to the real library about one engine configuration. */
#ifndef HOTBED_DNN_CONFIG_H
#define HOTBED_DNN_CONFIG_H

#include <stdint.h>

/* Notes of numerical kind, or of behaviour, of the configuration's engine: bit n for note n. */
uint32_t config_numerical_notes(void *config);
uint32_t config_behavior_notes(void *config);

/* Bits for `count` notes. */
uint32_t config_note_bits(const int *notes, int64_t count);

/* Bytes that a plan of it wants, without making one; -1 if unknown. */
int64_t config_workspace(void *config);

/* 1 if making a plan of it would compile a kernel, which takes about a second and needs no more than the sizes. */
int config_compiles(void *config);

#endif

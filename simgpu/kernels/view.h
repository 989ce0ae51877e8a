/* SPDX-License-Identifier: Apache-2.0
 *
 * A tensor as a kernel sees it: base address, type, sizes and strides. All of PyTorch's
 * representations are converted to this one, and numbers are read and written through it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define VIEW_DIMS 25

struct view {
	char *base;
	char type;
	int dims;
	int64_t sizes[VIEW_DIMS];   /* fastest-changing dimension first */
	int64_t strides[VIEW_DIMS]; /* in bytes */
	int64_t n;
};

struct value {
	long double x;
	bool known; /* else a guess */
};

/* These are false if the arguments cannot be of a tensor on the device. */
bool view_row(struct view *v, const void *base, char type, int64_t n); /* contiguous */
/* From an OffsetCalculator for `pointers` pointers, of which `base` is number `which`. */
bool view_steps(struct view *v, const void *base, char type, const uint32_t *steps, int pointers,
		int which);
/* From a TensorInfo with sizes of `word` bytes, 4 or 8. */
bool view_info(struct view *v, const void *info, char type, int word);
size_t view_info_bytes(int word);

size_t view_offset(const struct view *v, int64_t i);
struct value view_look(const struct view *v, int64_t i);
void view_put(const struct view *v, int64_t i, struct value value);
bool view_load(const struct view *v, struct value *out); /* true: all is known */
void view_store(const struct view *v, const struct value *in);
void view_forget(const struct view *v);
bool view_small(const struct view *v);
bool view_worth(const struct view *v); /* worth computing: small, or partly known whole numbers */
int64_t whole_most(char type);	       /* most elements of that type that are computed */
/* Zeroed values, freed by the caller; NULL if there is no memory. */
struct value *values_new(int64_t n);
/* All elements, freed by the caller; NULL if too large to compute or not all known. */
struct value *view_known(const struct view *v);

void view_sign(struct view *v); /* its strides may be negative */
/* Forgets the contents at an address to which `n` numbers of that type were written. */
void forget_row(const void *base, char type, int64_t n);

/* An OffsetCalculator's length in 4-byte words. */
size_t steps_words(int pointers);

/* SPDX-License-Identifier: Apache-2.0
 *
 * The workspace that cuDNN needs. AN APPROXIMATION: the real figures depend on the kernel that its
 * heuristics choose for the card, and are not known without one. The rules here:
 *
 * - Kernels for tensor cores need the channels last, those of 16 bits in groups of eight. Tensors
 * in another order are copied into the workspace: input, filter and output of the convolution.
 * - A filter of one pixel is a plain product, without copies.
 * - A first layer, whose input has few channels, has kernels that need no copies: forward for 16
 *   bits and for small filters, for the gradient of its input in fp32.
 * - The gradient of a filter is summed by many thread blocks, in fp32 and in addition to the
 *   copies, with as many partial sums as keep the card busy. A filter of one pixel has one for each
 *   image if the channels come first, and one for some 1,365 pixels if they come last.
 * - Convolutions with few channels to a group (depthwise ones) have kernels without a workspace.
 * - Batch normalisation that keeps its data on chip exchanges two sums for each channel between all
 *   multiprocessors.
 * - A card without tensor cores for fp32 (before 8.0) needs nothing but the partial sums.
 *
 * tests/e2e/test_cudnn.py compares them with the requests of 264 convolutions on an H100, in
 * tests/data/cudnn-h100.txt; tables of other cards are made by `make cudnn-table` on such a card.
 * The likely maximum is the workspace of a kernel that copies all tensors and has the most partial
 * sums. Every convolution also has a kernel without a workspace.
 */
#include <stdio.h>
#include <string.h>
#include "../core/devices.h"
#include "../core/usage.h"
#include "lib_cudnn.h"

#define VECTOR	     8 /* channels of 16 bits that are read at once */
#define SMALL_FILTER 9 /* pixels */
#define FEW_CHANNELS 4
#define TILE_ROWS    128 /* filter elements of an output channel, per tile */
#define TILE_COLUMNS 32	 /* output channels per tile, for a byte of a number */
#define MOST_SUMS    14
#define SUM_PIXELS   1365

static int64_t over(int64_t a, int64_t b)
{
	return (a + b - 1) / b;
}

static int64_t element(const struct cudnn_operand *o)
{
	return (int64_t)(o->bytes / o->elements);
}

static size_t copied(const struct cudnn_operand *o)
{
	const int64_t vector = element(o) == 2 ? VECTOR : 1;

	return o->bytes / o->channels * over(o->channels, vector) * vector;
}

static size_t copy_of(const struct cudnn_operand *o)
{
	return o->channels_last ? 0 : copied(o);
}

static size_t copies(enum cudnn_convolution which, const struct cudnn_operand *x,
		     const struct cudnn_operand *w, const struct cudnn_operand *y)
{
	const bool wide = element(x) == 4;
	const bool small = (int64_t)w->elements <= SMALL_FILTER * w->first * w->channels;
	const bool as_it_is =
		which == CONVOLUTION_FORWARD ? small || !wide : which == CONVOLUTION_DATA && wide;

	if (lib_capability() < 80 || (x->channels <= FEW_CHANNELS && as_it_is))
		return 0;
	return copy_of(x) + copy_of(w) + copy_of(y);
}

static int64_t partial_sums(const struct cudnn_operand *w)
{
	const int64_t rows = over((int64_t)w->elements / w->first, TILE_ROWS);
	const int64_t columns = over(w->first, TILE_COLUMNS * element(w));
	const int64_t n = sim_card()->sms / (rows * columns);

	return n < 1 ? 1 : n > MOST_SUMS ? MOST_SUMS : n;
}

static int64_t sums_of_pixel(const struct cudnn_operand *x)
{
	return x->channels_last ? over((int64_t)x->elements / x->channels, SUM_PIXELS) : x->first;
}

static size_t likely(enum cudnn_convolution which, const struct cudnn_operand *x,
		     const struct cudnn_operand *w, const struct cudnn_operand *y)
{
	const bool one_pixel = (int64_t)w->elements == w->first * w->channels;
	size_t bytes;

	if (w->channels < FEW_CHANNELS && x->channels > w->channels)
		return 0;
	bytes = one_pixel ? 0 : copies(which, x, w, y);
	if (which == CONVOLUTION_FILTER)
		bytes += w->elements * sizeof(float) *
			 (one_pixel ? sums_of_pixel(x) : partial_sums(w));
	return bytes;
}

/* Whether a card in CUDNN_TABLES ("h100 t4") has this card's compute capability. */
static bool is_measured(void)
{
	static const char tables[] = " " CUDNN_TABLES " ";
	const struct sim_card *here = sim_card();
	struct sim_card card;
	char name[64];

	for (size_t i = 0; card_find(NULL, i, &card); i++) {
		if (card.major != here->major || card.minor != here->minor)
			continue;
		snprintf(name, sizeof(name), " %.*s ", (int)strcspn(card.name, "-"), card.name);
		if (strstr(tables, name))
			return true;
	}
	return false;
}

size_t cudnn_convolution_workspace(enum cudnn_convolution which, const struct cudnn_operand *x,
				   const struct cudnn_operand *w, const struct cudnn_operand *y)
{
	size_t bytes, most;

	if (!x->elements || !w->elements || !y->elements)
		return 0;
	bytes = likely(which, x, w, y);
	most = copied(x) + copied(w) + copied(y);
	if (which == CONVOLUTION_FILTER)
		most += w->elements * sizeof(float) * MOST_SUMS;
	usage_convolution(bytes, most > bytes ? most : bytes, is_measured());
	return bytes;
}

size_t cudnn_batch_norm_workspace(int channels, bool persistent)
{
	return persistent ? 2 * sizeof(float) * channels * sim_card()->sms : 0;
}

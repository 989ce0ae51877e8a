/* SPDX-License-Identifier: Apache-2.0
 *
 * How much workspace cuDNN asks for. AN APPROXIMATION: the real figures depend on the kernel that
 * its heuristics choose for the card, and are not known without one. The rules here:
 *
 * - Kernels for tensor cores want the channels last. Tensors that come in another order are copied
 *   into the workspace: input, filter and output of the convolution, each in whole 256 bytes.
 * - The gradient of a filter is summed by many thread blocks: four partial sums in fp32, beside the
 *   copies.
 * - Convolutions with few channels to a group (depthwise ones) have kernels of their own, with
 * none.
 * - Batch normalisation that keeps its data on chip exchanges two sums for each channel between all
 *   multiprocessors.
 * - A card without tensor cores for fp32 (before 8.0) needs nothing but the partial sums.
 */
#include "lib_cudnn.h"

#define UNIT	     ((size_t)256)
#define PARTIAL_SUMS 4
#define FEW_CHANNELS 4

static size_t whole(size_t bytes)
{
	return (bytes + UNIT - 1) & ~(UNIT - 1);
}

static size_t copy_of(const struct cudnn_operand *o)
{
	return o->channels_last ? 0 : whole(o->bytes);
}

size_t cudnn_convolution_workspace(enum cudnn_convolution which, const struct cudnn_operand *x,
				   const struct cudnn_operand *w, const struct cudnn_operand *y)
{
	size_t bytes = 0;

	if (w->channels < FEW_CHANNELS && x->channels > w->channels)
		return 0;
	if (lib_capability() >= 80)
		bytes = copy_of(x) + copy_of(w) + copy_of(y);
	if (which == CONVOLUTION_FILTER)
		bytes += PARTIAL_SUMS * whole(w->elements * sizeof(float));
	return bytes;
}

size_t cudnn_batch_norm_workspace(int channels, bool persistent)
{
	return persistent ? 2 * sizeof(float) * channels * sim_card()->sms : 0;
}

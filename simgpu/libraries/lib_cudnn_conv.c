/* SPDX-License-Identifier: Apache-2.0
 *
 * cuDNN: the older convolution interface, which always finds one algorithm. Any thread.
 */
#include <string.h>
#include "lib_cudnn.h"

#define CONVOLUTION SIM_KIND('d', 'c', 'o', 'n')
#define ALGORITHM   1 /* the implicit product, which all three directions have */
#define TENSOR_MATH 1

struct convolution {
	int rank, mode, compute, groups, math, reorder;
	int pads[CUDNN_DIMS], strides[CUDNN_DIMS], dilations[CUDNN_DIMS];
};

struct performance {
	int algorithm, status;
	float time;
	size_t memory;
	int deterministic, math, reserved[3];
};

static struct convolution *convolution_of(void *handle)
{
	return sim_handle_check(handle, CONVOLUTION);
}

API(int, cudnnCreateConvolutionDescriptor, void **out)
{
	int result = CUDNN_CREATE(out, CONVOLUTION, sizeof(struct convolution));

	if (!result)
		convolution_of(*out)->groups = 1;
	return result;
}

API(int, cudnnDestroyConvolutionDescriptor, void *d)
{
	sim_handle_free(convolution_of(d));
	return CUDNN_OK;
}

API(int, cudnnSetConvolutionNdDescriptor, void *d, int rank, const int *pads, const int *strides,
    const int *dilations, int mode, int compute)
{
	struct convolution *c = convolution_of(d);

	if (!c || rank < 1 || rank > CUDNN_DIMS || !pads || !strides || !dilations)
		return CUDNN_BAD_PARAM;
	c->rank = rank;
	c->mode = mode;
	c->compute = compute;
	memcpy(c->pads, pads, rank * sizeof(int));
	memcpy(c->strides, strides, rank * sizeof(int));
	memcpy(c->dilations, dilations, rank * sizeof(int));
	return CUDNN_OK;
}

API(int, cudnnSetConvolution2dDescriptor, void *d, int pad_h, int pad_w, int stride_h, int stride_w,
    int dilation_h, int dilation_w, int mode, int compute)
{
	int pads[] = { pad_h, pad_w }, strides[] = { stride_h, stride_w };
	int dilations[] = { dilation_h, dilation_w };

	return cudnnSetConvolutionNdDescriptor(d, 2, pads, strides, dilations, mode, compute);
}

#define SETTING(what, field)                                                           \
	API_SETTING(cudnnSetConvolution##what, cudnnGetConvolution##what, CONVOLUTION, \
		    convolution, int, field, CUDNN_BAD_PARAM, CUDNN_BAD_PARAM)

SETTING(MathType, math)
SETTING(GroupCount, groups)
SETTING(ReorderType, reorder)

/* ---- workspace ---- */

static bool operand(const struct cudnn_shape *s, bool filter, struct cudnn_operand *o)
{
	if (!s || s->rank < 2)
		return false;
	o->elements = 1;
	for (int i = 0; i < s->rank; i++)
		o->elements *= s->dims[i];
	o->bytes = o->elements * cudnn_type_bytes(s->type);
	o->first = s->dims[0];
	o->channels = s->dims[1];
	o->channels_last = filter ? s->format == 1 : s->strides[1] == 1;
	return true;
}

static int workspace(enum cudnn_convolution which, void *x, void *w, void *y, size_t *out)
{
	struct cudnn_operand ox, ow, oy;

	if (!operand(cudnn_tensor(x), false, &ox) || !operand(cudnn_filter(w), true, &ow) ||
	    !operand(cudnn_tensor(y), false, &oy))
		return CUDNN_BAD_PARAM;
	return cudnn_size(out, cudnn_convolution_workspace(which, &ox, &ow, &oy));
}

static int best(enum cudnn_convolution which, void *x, void *w, void *y, int wanted, int *found,
		struct performance *results)
{
	size_t bytes;
	int result = workspace(which, x, w, y, &bytes);

	if (result || !found || !results || wanted < 1)
		return result ? result : CUDNN_BAD_PARAM;
	results[0] = (struct performance){ ALGORITHM, CUDNN_OK, 1, bytes, 1, TENSOR_MATH, { 0 } };
	*found = 1;
	return CUDNN_OK;
}

/* The three directions take the same three descriptors (input, filter, output) in other orders. */
#define DIRECTION(name, which, a, b, c)                                                         \
	API(int, cudnnGetConvolution##name##AlgorithmMaxCount, void *handle, int *count)        \
	{                                                                                       \
		(void)handle;                                                                   \
		if (!count)                                                                     \
			return CUDNN_NULL_POINTER;                                              \
		*count = 1;                                                                     \
		return CUDNN_OK;                                                                \
	}                                                                                       \
	API(int, cudnnGetConvolution##name##Algorithm_v7, void *handle, void *a, void *b,       \
	    void *conv, void *c, int wanted, int *found, struct performance *results)           \
	{                                                                                       \
		(void)handle, (void)conv;                                                       \
		return best(which, x, w, y, wanted, found, results);                            \
	}                                                                                       \
	API(int, cudnnFindConvolution##name##Algorithm, void *handle, void *a, void *b,         \
	    void *conv, void *c, int wanted, int *found, struct performance *results)           \
	{                                                                                       \
		(void)handle, (void)conv;                                                       \
		return best(which, x, w, y, wanted, found, results);                            \
	}                                                                                       \
	API(int, cudnnFindConvolution##name##AlgorithmEx, void *handle, void *a,                \
	    const void *a_data, void *b, const void *b_data, void *conv, void *c, void *c_data, \
	    int wanted, int *found, struct performance *results, void *space, size_t bytes)     \
	{                                                                                       \
		(void)handle, (void)a_data, (void)b_data, (void)conv, (void)c_data;             \
		(void)space, (void)bytes;                                                       \
		return best(which, x, w, y, wanted, found, results);                            \
	}

DIRECTION(Forward, CONVOLUTION_FORWARD, x, w, y)
DIRECTION(BackwardData, CONVOLUTION_DATA, w, y, x)
DIRECTION(BackwardFilter, CONVOLUTION_FILTER, x, y, w)

API_CALL(int, cudnnGetConvolutionForwardWorkspaceSize,
	 workspace(CONVOLUTION_FORWARD, x, w, y, bytes), UNUSED void *handle, void *x, void *w,
	 UNUSED void *conv, void *y, UNUSED int algorithm, size_t *bytes)
API_CALL(int, cudnnGetConvolutionBackwardDataWorkspaceSize,
	 workspace(CONVOLUTION_DATA, dx, w, dy, bytes), UNUSED void *handle, void *w, void *dy,
	 UNUSED void *conv, void *dx, UNUSED int algorithm, size_t *bytes)
API_CALL(int, cudnnGetConvolutionBackwardFilterWorkspaceSize,
	 workspace(CONVOLUTION_FILTER, x, dw, dy, bytes), UNUSED void *handle, void *x, void *dy,
	 UNUSED void *conv, void *dw, UNUSED int algorithm, size_t *bytes)

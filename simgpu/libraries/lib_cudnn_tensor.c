/* SPDX-License-Identifier: Apache-2.0
 *
 * cuDNN: tensor and filter descriptors, which remember their shape. Any thread.
 */
#include <string.h>
#include "lib_cudnn.h"

/* By the numbers of cudnnDataType_t. */
size_t cudnn_type_bytes(int type)
{
	static const unsigned char bytes[] = { 4, 8, 2, 1, 4, 4, 1, 4, 32, 2, 8, 1, 1, 1, 4, 1, 1 };

	return type >= 0 && type < (int)sizeof(bytes) ? bytes[type] : 4;
}

int cudnn_size(size_t *out, size_t value)
{
	if (!out)
		return CUDNN_NULL_POINTER;
	*out = value;
	return CUDNN_OK;
}

struct cudnn_shape *cudnn_tensor(void *handle)
{
	return sim_handle_check(handle, CUDNN_TENSOR);
}

struct cudnn_shape *cudnn_filter(void *handle)
{
	return sim_handle_check(handle, CUDNN_FILTER);
}

int cudnn_set_shape(struct cudnn_shape *s, int type, int rank, const int *dims, const int *strides)
{
	if (!s || !dims || rank < 1 || rank > CUDNN_DIMS)
		return CUDNN_BAD_PARAM;
	s->type = type;
	s->rank = rank;
	memcpy(s->dims, dims, rank * sizeof(int));
	if (strides) {
		memcpy(s->strides, strides, rank * sizeof(int));
		return CUDNN_OK;
	}
	s->strides[rank - 1] = 1;
	for (int i = rank - 2; i >= 0; i--)
		s->strides[i] = s->strides[i + 1] * s->dims[i + 1];
	return CUDNN_OK;
}

/* Bytes from the first element to the end of the last. */
size_t cudnn_shape_bytes(const struct cudnn_shape *s)
{
	size_t last = 0;

	for (int i = 0; i < s->rank; i++) {
		if (s->dims[i] < 1)
			return 0;
		last += (size_t)(s->dims[i] - 1) * s->strides[i];
	}
	return (last + 1) * cudnn_type_bytes(s->type);
}

static int get(const struct cudnn_shape *s, int wanted, int *type, int *rank, int *dims,
	       int *strides)
{
	int n;

	if (!s || !rank)
		return CUDNN_BAD_PARAM;
	n = wanted < s->rank ? wanted : s->rank;
	if (type)
		*type = s->type;
	*rank = s->rank;
	if (dims)
		memcpy(dims, s->dims, n * sizeof(int));
	if (strides)
		memcpy(strides, s->strides, n * sizeof(int));
	return CUDNN_OK;
}

/* ---- tensors ---- */

CUDNN_OBJECT(cudnnCreateTensorDescriptor, cudnnDestroyTensorDescriptor, CUDNN_TENSOR,
	     sizeof(struct cudnn_shape))

API_CALL(int, cudnnSetTensorNdDescriptor,
	 strides ? cudnn_set_shape(cudnn_tensor(d), type, rank, dims, strides) : CUDNN_BAD_PARAM,
	 void *d, int type, int rank, const int *dims, const int *strides)

API(int, cudnnSetTensorNdDescriptorEx, void *d, int format, int type, int rank, const int *dims)
{
	struct cudnn_shape *s = cudnn_tensor(d);
	int result = cudnn_set_shape(s, type, rank, dims, NULL);

	if (!result)
		s->format = format;
	return result;
}

API(int, cudnnSetTensor4dDescriptor, void *d, int format, int type, int n, int c, int h, int w)
{
	int dims[] = { n, c, h, w }, last[] = { c * h * w, 1, w * c, c };

	return cudnn_set_shape(cudnn_tensor(d), type, 4, dims, format == 1 ? last : NULL);
}

API(int, cudnnSetTensor4dDescriptorEx, void *d, int type, int n, int c, int h, int w, int ns,
    int cs, int hs, int ws)
{
	int dims[] = { n, c, h, w }, strides[] = { ns, cs, hs, ws };

	return cudnn_set_shape(cudnn_tensor(d), type, 4, dims, strides);
}

API_CALL(int, cudnnGetTensorNdDescriptor, get(cudnn_tensor(d), wanted, type, rank, dims, strides),
	 void *d, int wanted, int *type, int *rank, int *dims, int *strides)

API(int, cudnnGetTensor4dDescriptor, void *d, int *type, int *n, int *c, int *h, int *w, int *ns,
    int *cs, int *hs, int *ws)
{
	struct cudnn_shape *s = cudnn_tensor(d);
	int *dims[] = { n, c, h, w }, *strides[] = { ns, cs, hs, ws };

	if (!s || s->rank != 4)
		return CUDNN_BAD_PARAM;
	*type = s->type;
	for (int i = 0; i < 4; i++) {
		*dims[i] = s->dims[i];
		*strides[i] = s->strides[i];
	}
	return CUDNN_OK;
}

API(int, cudnnGetTensorSizeInBytes, void *d, size_t *bytes)
{
	struct cudnn_shape *s = cudnn_tensor(d);

	return s ? cudnn_size(bytes, cudnn_shape_bytes(s)) : CUDNN_BAD_PARAM;
}

/* A scale and a bias for each channel (mode 1, 2) or for each activation (mode 0). */
API(int, cudnnDeriveBNTensorDescriptor, void *derived, void *x, int mode)
{
	struct cudnn_shape *s = cudnn_tensor(x);
	int dims[CUDNN_DIMS];

	if (!s || s->rank < 2)
		return CUDNN_BAD_PARAM;
	for (int i = 0; i < s->rank; i++)
		dims[i] = i == 1 || (i > 1 && !mode) ? s->dims[i] : 1;
	return cudnn_set_shape(cudnn_tensor(derived), s->type == 1 ? 1 : 0, s->rank, dims, NULL);
}

/* ---- filters ---- */

CUDNN_OBJECT(cudnnCreateFilterDescriptor, cudnnDestroyFilterDescriptor, CUDNN_FILTER,
	     sizeof(struct cudnn_shape))

API(int, cudnnSetFilterNdDescriptor, void *d, int type, int format, int rank, const int *dims)
{
	struct cudnn_shape *s = cudnn_filter(d);
	int result = cudnn_set_shape(s, type, rank, dims, NULL);

	if (!result)
		s->format = format;
	return result;
}

API(int, cudnnSetFilter4dDescriptor, void *d, int type, int format, int k, int c, int h, int w)
{
	int dims[] = { k, c, h, w };

	return cudnnSetFilterNdDescriptor(d, type, format, 4, dims);
}

API(int, cudnnGetFilterNdDescriptor, void *d, int wanted, int *type, int *format, int *rank,
    int *dims)
{
	struct cudnn_shape *s = cudnn_filter(d);

	if (s && format)
		*format = s->format;
	return get(s, wanted, type, rank, dims, NULL);
}

API(int, cudnnGetFilter4dDescriptor, void *d, int *type, int *format, int *k, int *c, int *h,
    int *w)
{
	struct cudnn_shape *s = cudnn_filter(d);
	int *dims[] = { k, c, h, w };

	if (!s || s->rank != 4)
		return CUDNN_BAD_PARAM;
	*type = s->type;
	*format = s->format;
	for (int i = 0; i < 4; i++)
		*dims[i] = s->dims[i];
	return CUDNN_OK;
}

API(int, cudnnGetFilterSizeInBytes, void *d, size_t *bytes)
{
	struct cudnn_shape *s = cudnn_filter(d);

	return s ? cudnn_size(bytes, cudnn_shape_bytes(s)) : CUDNN_BAD_PARAM;
}

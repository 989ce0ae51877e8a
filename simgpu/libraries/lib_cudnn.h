/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by cuDNN's files: descriptors with a shape, and the sizes of workspaces.
 */
#pragma once

#include "lib.h"

enum {
	CUDNN_OK = 0,
	CUDNN_BAD_PARAM = 2000,
	CUDNN_NULL_POINTER = 2002,
	CUDNN_UNSUPPORTED = 3000,
	CUDNN_NO_ROOM = 4003,
};

/* The functions that make and free a descriptor; CUDNN_CREATE makes one. */
#define CUDNN_OBJECT(make, unmake, kind, bytes) \
	API_OBJECT(make, unmake, kind, bytes, CUDNN_NULL_POINTER, CUDNN_NO_ROOM)
#define CUDNN_CREATE(out, kind, bytes) \
	lib_create(out, kind, bytes, CUDNN_NULL_POINTER, CUDNN_NO_ROOM)

#define CUDNN_DIMS 8

/* A tensor's or a filter's shape; strides are 0 for a filter, whose format is kept instead. */
struct cudnn_shape {
	int type, format, rank;
	int dims[CUDNN_DIMS], strides[CUDNN_DIMS];
};

#define CUDNN_TENSOR SIM_KIND('d', 't', 'e', 'n')
#define CUDNN_FILTER SIM_KIND('d', 'f', 'i', 'l')

struct cudnn_shape *cudnn_tensor(void *handle); /* NULL if it is not one */
struct cudnn_shape *cudnn_filter(void *handle);
int cudnn_set_shape(struct cudnn_shape *s, int type, int rank, const int *dims, const int *strides);
size_t cudnn_shape_bytes(const struct cudnn_shape *s);
size_t cudnn_type_bytes(int type); /* cudnnDataType_t */
/* Writes an out parameter. */
int cudnn_size(size_t *out, size_t value);

/* ---- lib_cudnn_workspace.c ---- */
enum cudnn_convolution { CONVOLUTION_FORWARD, CONVOLUTION_DATA, CONVOLUTION_FILTER };

/* One tensor of a convolution: everything that the size of the workspace depends on. */
struct cudnn_operand {
	size_t bytes, elements;
	bool channels_last;
	int64_t first, channels; /* sizes of the first two dimensions */
};

size_t cudnn_convolution_workspace(enum cudnn_convolution which, const struct cudnn_operand *x,
				   const struct cudnn_operand *w, const struct cudnn_operand *y);
size_t cudnn_batch_norm_workspace(int channels, bool persistent);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The part of CUDA's binary interface that the library needs, so that it builds without CUDA's
 * headers. tests/e2e/test_abi.py compares it with the headers of CUDA 11, 12 and 13. Results are
 * int, device addresses uint64_t, handles void *.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Error codes, the same in the runtime and the driver. */
#define CUDA_NOT_INITIALIZED 3
#define CUDA_INVALID_VALUE   1

#define CUDA_ABI_NEWEST 13050 /* the newest version that hooks.def was compared with */

enum { CUDA_CAPTURE_ACTIVE = 1 };  /* CUstreamCaptureStatus */
enum { CUDA_CAPTURE_RELAXED = 2 }; /* CUstreamCaptureMode */

enum cuda_attribute {
	CUDA_SM_COUNT = 16,
	CUDA_CAPABILITY_MAJOR = 75,
	CUDA_CAPABILITY_MINOR = 76,
};

struct cuda_extent {
	size_t width, height, depth;
};

struct cuda_pitched {
	void *ptr;
	size_t pitch, xsize, ysize;
};

/* Bits of each channel of an element. */
struct cuda_channels {
	int x, y, z, w;
	int format;
};

struct cuda_ipc_handle {
	char reserved[64];
};

enum { CUDA_LOCATION_DEVICE = 1 };

struct cuda_location {
	int type;
	int id;
};

/* CUmemPoolProps and cudaMemPoolProps, as far as they are read here. */
struct cuda_pool_props {
	int type;
	int handles;
	struct cuda_location location;
};

/* CUmemAllocationProp, likewise. */
struct cuda_phys_props {
	int type;
	int handles;
	struct cuda_location location;
};

struct cuda_array {
	size_t width, height;
	int format;
	unsigned channels;
};

struct cuda_array3d {
	size_t width, height, depth;
	int format;
	unsigned channels;
	unsigned flags;
};

/* CUlaunchConfig. */
struct cuda_launch {
	unsigned grid[3], block[3], shared;
	void *stream;
	void *attributes;
	unsigned count;
};

/* CUDA_KERNEL_NODE_PARAMS_v2. */
struct cuda_kernel_node {
	void *function;
	unsigned grid[3], block[3], shared;
	void **params;
	void **extra;
	void *kernel; /* if function is NULL */
	void *context;
};

/* CUmemorytype */
enum { CUDA_MEMORY_HOST = 1, CUDA_MEMORY_ARRAY = 3 };

/* One side of a CUDA_MEMCPY2D. */
struct cuda_side2d {
	size_t x, y;
	int type;
	uint64_t host, device, array;
	size_t pitch;
};

struct cuda_copy2d {
	struct cuda_side2d source, target;
	size_t width, height;
};

/* One side of a CUDA_MEMCPY3D or CUDA_MEMCPY3D_PEER. */
struct cuda_side3d {
	size_t x, y, z, lod;
	int type;
	uint64_t host, device, array;
	uint64_t context; /* reserved without PEER */
	size_t pitch, height;
};

struct cuda_copy3d {
	struct cuda_side3d source, target;
	size_t width, height, depth;
};

/* CUDA_MEMSET_NODE_PARAMS. */
struct cuda_set_node {
	uint64_t address;
	size_t pitch;
	unsigned value, element;
	size_t width, height;
};

/* CUgraphNodeType */
enum { CUDA_NODE_KERNEL = 0, CUDA_NODE_COPY = 1, CUDA_NODE_SET = 2, CUDA_NODE_GRAPH = 4 };

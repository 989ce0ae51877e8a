/* SPDX-License-Identifier: Apache-2.0
 *
 * A graph given to cuDNN: nodes with attributes, and the few attribute numbers that are used here
 * (of cudnnBackendAttributeName_t, cudnnBackendDescriptorType_t and cudnnBackendAttributeType_t).
 */
#pragma once

#include "lib_cudnn.h"

#define CUDNN_NODE SIM_KIND('d', 'b', 'a', 'k')

enum { /* attribute types */
       TYPE_HANDLE = 0,
       TYPE_BOOLEAN = 2,
       TYPE_INT64 = 3,
       TYPE_DOUBLE = 5,
       TYPE_POINTER = 6,
       TYPE_DESCRIPTOR = 15,
       TYPE_CHAR = 24,
       TYPE_FRACTION = 26,
};

enum { /* attributes */
       ENGINEHEUR_GRAPH = 201,
       ENGINEHEUR_RESULTS = 202,
       ENGINECFG_ENGINE = 300,
       ENGINECFG_WORKSPACE = 303,
       ENGINECFG_SHARED_MEMORY = 304,
       PLAN_ENGINECFG = 401,
       PLAN_WORKSPACE = 402,
       FORWARD_W = 703,
       FORWARD_X = 704,
       FORWARD_Y = 705,
       DATA_W = 709,
       DATA_DX = 710,
       DATA_DY = 711,
       FILTER_DW = 715,
       FILTER_X = 716,
       FILTER_DY = 717,
       GRAPH_OPERATIONS = 801,
       GRAPH_ENGINE_COUNT = 802,
       TENSOR_TYPE = 901,
       TENSOR_DIMENSIONS = 902,
       TENSOR_STRIDES = 903,
       PACK_POINTERS = 1001,
       PACK_WORKSPACE = 1003,
       ENGINE_GRAPH = 1300,
       ENGINE_INDEX = 1301,
       MATMUL_A = 1520,
       MATMUL_B = 1521,
       MATMUL_C = 1522,
       SDPA_BACKWARD_Q = 2851,
};

enum { /* nodes */
       ENGINE = 2,
       OPERATION_FORWARD = 10,
       OPERATION_FILTER = 11,
       OPERATION_DATA = 12,
       OPERATION_GRAPH = 15,
       OPERATION_MATMUL = 19,
       OPERATION_SDPA_BACKWARD = 43,
};

struct cudnn_attribute {
	struct cudnn_attribute *next;
	int name, type;
	int64_t count;
	unsigned char data[]; /* of `count` elements */
};

struct cudnn_node {
	int type, references;
	struct cudnn_attribute *attributes;
};

struct cudnn_attribute *cudnn_attribute(const struct cudnn_node *d, int name);
struct cudnn_node *cudnn_graph_of(struct cudnn_node *d);      /* of a plan; NULL: none */
size_t cudnn_graph_workspace(const struct cudnn_node *graph); /* lib_cudnn_graph.c */
/* Puts a plan's work on a stream; lib_cudnn_time.c. */
void cudnn_execute(void *stream, void *plan);
/* Uses the memory that a plan is executed on. */
void cudnn_use_pack(void *pack);

/* SPDX-License-Identifier: Apache-2.0
 *
 * The workspace of a graph: the largest one of its operations. Convolutions follow the rules of
 * lib_cudnn_workspace.c. Attention needs none forward. Backward (five products in one graph, or one
 * operation) it sums the gradient of the queries in fp32, with one more number per row, which is an
 * approximation too. Any thread.
 */
#include "lib_cudnn_graph.h"

struct cudnn_attribute *cudnn_attribute(const struct cudnn_node *d, int name)
{
	struct cudnn_attribute *a = d ? d->attributes : NULL;

	while (a && a->name != name)
		a = a->next;
	return a;
}

#define BACKWARD_PRODUCTS 5

static const struct cudnn_node *child(const struct cudnn_node *d, int name)
{
	struct cudnn_attribute *a = cudnn_attribute(d, name);

	return a && a->type == TYPE_DESCRIPTOR && a->count ? *(struct cudnn_node **)a->data : NULL;
}

static bool read_tensor(const struct cudnn_node *tensor, struct cudnn_operand *o)
{
	struct cudnn_attribute *type = cudnn_attribute(tensor, TENSOR_TYPE);
	struct cudnn_attribute *dims = cudnn_attribute(tensor, TENSOR_DIMENSIONS);
	struct cudnn_attribute *strides = cudnn_attribute(tensor, TENSOR_STRIDES);
	const int64_t *d, *s;

	if (!type || !dims || !strides || dims->count < 2 || strides->count != dims->count)
		return false;
	d = (const int64_t *)dims->data;
	s = (const int64_t *)strides->data;
	o->elements = 1;
	for (int64_t i = 0; i < dims->count; i++)
		o->elements *= d[i];
	o->bytes = o->elements * cudnn_type_bytes(*(const int *)type->data);
	o->first = d[0];
	o->channels = d[1];
	o->channels_last = s[1] == 1;
	return true;
}

static size_t convolution(const struct cudnn_node *op)
{
	static const struct {
		int type;
		enum cudnn_convolution which;
		int x, w, y;
	} kinds[] = {
		{ OPERATION_FORWARD, CONVOLUTION_FORWARD, FORWARD_X, FORWARD_W, FORWARD_Y },
		{ OPERATION_DATA, CONVOLUTION_DATA, DATA_DX, DATA_W, DATA_DY },
		{ OPERATION_FILTER, CONVOLUTION_FILTER, FILTER_X, FILTER_DW, FILTER_DY },
	};
	struct cudnn_operand x, w, y;

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (kinds[i].type == op->type && read_tensor(child(op, kinds[i].x), &x) &&
		    read_tensor(child(op, kinds[i].w), &w) &&
		    read_tensor(child(op, kinds[i].y), &y))
			return cudnn_convolution_workspace(kinds[i].which, &x, &w, &y);
	return 0;
}

/* Queries are batch x heads x rows x width. */
static size_t attention_backward(const struct cudnn_node *queries)
{
	struct cudnn_attribute *dims = cudnn_attribute(queries, TENSOR_DIMENSIONS);
	const int64_t *d = dims ? (const int64_t *)dims->data : NULL;

	return d && dims->count == 4 ? d[0] * d[1] * d[2] * (d[3] + 1) * sizeof(float) : 0;
}

size_t cudnn_graph_workspace(const struct cudnn_node *graph)
{
	struct cudnn_attribute *ops = cudnn_attribute(graph, GRAPH_OPERATIONS);
	const struct cudnn_node *queries = NULL;
	size_t most = 0, bytes;
	int products = 0;

	for (int64_t i = 0; ops && i < ops->count; i++) {
		const struct cudnn_node *op = ((struct cudnn_node **)ops->data)[i];

		bytes = convolution(op);
		if (op->type == OPERATION_SDPA_BACKWARD)
			bytes = attention_backward(child(op, SDPA_BACKWARD_Q));
		if (bytes > most)
			most = bytes;
		if (op->type == OPERATION_MATMUL && !products++)
			queries = child(op, MATMUL_A);
	}
	bytes = products >= BACKWARD_PRODUCTS ? attention_backward(queries) : 0;
	return bytes > most ? bytes : most;
}

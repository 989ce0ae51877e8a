/* SPDX-License-Identifier: Apache-2.0
 *
 * The time of a plan of cuDNN, which is that of the products in its graph. A convolution multiplies
 * each element of its output by a filter's worth of input; attention is products of batches of
 * matrices. Any thread.
 */
#include "lib_cudnn_graph.h"
#include "lib_products.h"

struct shape {
	const int64_t *d;
	int64_t n;
	int type;
};

static bool shape_of(const struct cudnn_node *op, int name, struct shape *s)
{
	struct cudnn_attribute *a = cudnn_attribute(op, name), *dims, *type;
	const struct cudnn_node *tensor;

	if (!a || a->type != TYPE_DESCRIPTOR || !a->count)
		return false;
	tensor = *(struct cudnn_node **)a->data;
	dims = cudnn_attribute(tensor, TENSOR_DIMENSIONS);
	type = cudnn_attribute(tensor, TENSOR_TYPE);
	if (!dims || !type || dims->count < 3)
		return false;
	*s = (struct shape){ (const int64_t *)dims->data, dims->count, *(const int *)type->data };
	return true;
}

/* cudnnDataType_t as cudaDataType_t. */
static int cuda_type(int type)
{
	static const int types[] = { 0, 1, 2, 3, 10, 3, 8, 8, 3, 14 };

	return type >= 0 && type < 10 ? types[type] : type == 12 || type == 13 ? 28 : 0;
}

static double elements(const struct shape *s, int64_t from)
{
	double n = 1;

	for (int64_t i = from; i < s->n; i++)
		n *= (double)s->d[i];
	return n;
}

static void convolution(void *stream, const struct shape *filter, const struct shape *out)
{
	double depth = elements(filter, 1), rows = elements(out, 0) / (double)out->d[1];
	struct lib_product p;

	lib_product_of(&p, rows, (double)filter->d[0], depth, 1, cuda_type(out->type));
	lib_product(stream, p.operations, p.cuda_type, p.bytes);
}

static void matrices(void *stream, const struct shape *a, const struct shape *b)
{
	double count = elements(a, 0) / (double)(a->d[a->n - 1] * a->d[a->n - 2]);
	struct lib_product p;

	lib_product_of(&p, (double)a->d[a->n - 2], (double)b->d[b->n - 1], (double)a->d[a->n - 1],
		       count, cuda_type(a->type));
	lib_product(stream, p.operations, p.cuda_type, p.bytes);
}

/* Puts one operation on a stream; false if it is no product. kinds: filter and output. */
static bool execute(void *stream, const struct cudnn_node *op)
{
	static const struct {
		int type, filter, out;
	} kinds[] = {
		{ OPERATION_FORWARD, FORWARD_W, FORWARD_Y },
		{ OPERATION_DATA, DATA_W, DATA_DY },
		{ OPERATION_FILTER, FILTER_DW, FILTER_DY },
	};
	struct shape a, b;

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (op->type == kinds[i].type && shape_of(op, kinds[i].filter, &a) &&
		    shape_of(op, kinds[i].out, &b)) {
			convolution(stream, &a, &b);
			return true;
		}
	if (op->type != OPERATION_MATMUL || !shape_of(op, MATMUL_A, &a) ||
	    !shape_of(op, MATMUL_B, &b))
		return false;
	matrices(stream, &a, &b);
	return true;
}

void cudnn_use_pack(void *pack)
{
	static const int names[] = { PACK_POINTERS, PACK_WORKSPACE };

	for (int i = 0; i < 2; i++) {
		struct cudnn_attribute *a =
			cudnn_attribute(sim_handle_check(pack, CUDNN_NODE), names[i]);

		for (int64_t j = 0; a && a->type == TYPE_POINTER && j < a->count; j++)
			lib_use(((void **)a->data)[j]);
	}
}

void cudnn_execute(void *stream, void *plan)
{
	struct cudnn_node *graph = cudnn_graph_of(sim_handle_check(plan, CUDNN_NODE));
	struct cudnn_attribute *ops = cudnn_attribute(graph, GRAPH_OPERATIONS);
	bool any = false;

	for (int64_t i = 0; ops && i < ops->count; i++)
		any |= execute(stream, ((struct cudnn_node **)ops->data)[i]);
	if (!any)
		lib_launch(stream);
}

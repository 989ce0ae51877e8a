/* SPDX-License-Identifier: Apache-2.0
 *
 * cuDNN: recurrent networks. The layout of the weight space is exact: first all matrices, by
 * pseudo-layer (a layer in one direction): input matrices of the gates, recurrent ones, the
 * projection; then the biases in the same order. The reserve is exact (docs/gpu-results.md), the
 * workspace is an approximation. Any thread.
 */
#include "lib_cudnn.h"

#define RNN	     SIM_KIND('d', 'r', 'n', 'n')
#define RNN_DATA     SIM_KIND('d', 'r', 'd', 'a')
#define MODE_LSTM    2
#define MODE_GRU     3
#define TRAINING     1
#define SINGLE_INPUT 1
#define DOUBLE_BIAS  2
#define SINGLE_REC   3

struct rnn {
	int algorithm, mode, bias, bidirectional, input_mode, type, precision, math;
	int input, hidden, projection, layers;
	void *dropout;
	unsigned int flags;
};

struct rnn_data {
	int type, layout, steps, batch, width;
};

static struct rnn *rnn_of(void *handle)
{
	return sim_handle_check(handle, RNN);
}

CUDNN_OBJECT(cudnnCreateRNNDescriptor, cudnnDestroyRNNDescriptor, RNN, sizeof(struct rnn))
API(int, cudnnSetRNNDescriptor_v8, void *d, int algorithm, int mode, int bias, int bidirectional,
    int input_mode, int type, int precision, int math, int input, int hidden, int projection,
    int layers, void *dropout, unsigned int flags)
{
	struct rnn *r = rnn_of(d);

	if (!r || input < 1 || hidden < 1 || layers < 1)
		return CUDNN_BAD_PARAM;
	*r = (struct rnn){ algorithm, mode,  bias,   bidirectional, input_mode, type,	 precision,
			   math,      input, hidden, projection,    layers,	dropout, flags };
	return CUDNN_OK;
}

CUDNN_OBJECT(cudnnCreateRNNDataDescriptor, cudnnDestroyRNNDataDescriptor, RNN_DATA,
	     sizeof(struct rnn_data))

API(int, cudnnSetRNNDataDescriptor, void *d, int type, int layout, int steps, int batch, int width,
    const int *lengths, void *fill)
{
	struct rnn_data *data = sim_handle_check(d, RNN_DATA);

	(void)lengths, (void)fill;
	if (!data)
		return CUDNN_BAD_PARAM;
	*data = (struct rnn_data){ type, layout, steps, batch, width };
	return CUDNN_OK;
}

/* ---- shapes ---- */

static int gates(const struct rnn *r)
{
	return r->mode == MODE_LSTM ? 4 : r->mode == MODE_GRU ? 3 : 1;
}

static int directions(const struct rnn *r)
{
	return r->bidirectional ? 2 : 1;
}

static bool projects(const struct rnn *r)
{
	return r->projection > 0 && r->projection < r->hidden;
}

/* The width of a layer's output in one direction. */
static int output(const struct rnn *r)
{
	return projects(r) ? r->projection : r->hidden;
}

static int input_of(const struct rnn *r, int pseudo_layer)
{
	return pseudo_layer < directions(r) ? r->input : output(r) * directions(r);
}

static size_t matrices_of(const struct rnn *r, int pseudo_layer)
{
	size_t gate = (size_t)r->hidden * (input_of(r, pseudo_layer) + output(r));

	return gates(r) * gate + (projects(r) ? (size_t)r->projection * r->hidden : 0);
}

static int biases(const struct rnn *r)
{
	if (r->bias == DOUBLE_BIAS)
		return 2 * gates(r);
	return r->bias == SINGLE_INPUT || r->bias == SINGLE_REC ? gates(r) : 0;
}

static size_t all_matrices(const struct rnn *r)
{
	size_t n = 0;

	for (int i = 0; i < r->layers * directions(r); i++)
		n += matrices_of(r, i);
	return n;
}

static size_t weight_bytes(const struct rnn *r)
{
	size_t n = all_matrices(r) + (size_t)r->layers * directions(r) * biases(r) * r->hidden;

	return n * cudnn_type_bytes(r->type);
}

API(int, cudnnGetRNNWeightSpaceSize, void *handle, void *d, size_t *bytes)
{
	struct rnn *r = rnn_of(d);

	(void)handle;
	return r ? cudnn_size(bytes, weight_bytes(r)) : CUDNN_BAD_PARAM;
}

/* A matrix by its number: the input matrices of the gates, the recurrent ones, the projection. */
static bool find_matrix(const struct rnn *r, int pseudo_layer, int number, size_t *offset,
			int *rows, int *columns)
{
	int g = gates(r), input = input_of(r, pseudo_layer);

	*offset = 0;
	for (int i = 0; i < pseudo_layer; i++)
		*offset += matrices_of(r, i);
	*rows = r->hidden;
	*columns = number < g ? input : output(r);
	if (number < g) {
		*offset += (size_t)number * r->hidden * input;
	} else if (number < 2 * g) {
		*offset += (size_t)g * r->hidden * input;
		*offset += (size_t)(number - g) * r->hidden * output(r);
	} else {
		*offset += (size_t)g * r->hidden * (input + output(r));
		*rows = r->projection;
		*columns = r->hidden;
		return number == 2 * g && projects(r);
	}
	return true;
}

static bool find_bias(const struct rnn *r, int pseudo_layer, int number, size_t *offset)
{
	if (r->bias == SINGLE_REC)
		number -= gates(r);
	if (number < 0 || number >= biases(r))
		return false;
	*offset = all_matrices(r) + ((size_t)pseudo_layer * biases(r) + number) * r->hidden;
	return true;
}

static int describe_weights(void *tensor, int type, int rows, int columns, const char *at,
			    void **address)
{
	int dims[] = { 1, rows, columns };
	struct cudnn_shape *s = cudnn_tensor(tensor);

	if (address)
		*address = (void *)at;
	if (!s)
		return CUDNN_OK; /* not every caller wants both */
	if (at)
		return cudnn_set_shape(s, type, 3, dims, NULL);
	s->rank = 0;
	return CUDNN_OK;
}

API(int, cudnnGetRNNWeightParams, void *handle, void *d, int pseudo_layer, size_t bytes,
    const char *space, int number, void *matrix, void **matrix_at, void *bias, void **bias_at)
{
	struct rnn *r = rnn_of(d);
	size_t offset, element;
	int rows, columns, result;
	bool found;

	(void)handle, (void)bytes;
	if (!r || pseudo_layer < 0 || pseudo_layer >= r->layers * directions(r) || number < 0)
		return CUDNN_BAD_PARAM;
	element = cudnn_type_bytes(r->type);
	found = find_matrix(r, pseudo_layer, number, &offset, &rows, &columns);
	result = describe_weights(matrix, r->type, rows, columns,
				  found ? space + offset * element : NULL, matrix_at);
	if (result)
		return result;
	found = find_bias(r, pseudo_layer, number, &offset);
	return describe_weights(bias, r->type, r->hidden, 1,
				found ? space + offset * element : NULL, bias_at);
}

/* ---- workspace ---- */

#define LAYER_BYTES (8 * MIB) /* for the products of a layer in one direction */

/* Number of tensors of the size of a layer's output that are saved for backward. */
static int kept(const struct rnn *r)
{
	return r->mode == MODE_LSTM ? 5 : r->mode == MODE_GRU ? 6 : 1;
}

/* The workspace in halves of such tensors, fitted to an H100's. */
static int halves_used(const struct rnn *r)
{
	return r->mode == MODE_LSTM ? 12 : r->mode == MODE_GRU ? 10 : 9;
}

API(int, cudnnGetRNNTempSpaceSizes, void *handle, void *d, int mode, void *x, size_t *workspace,
    size_t *reserve)
{
	struct rnn *r = rnn_of(d);
	struct rnn_data *data = sim_handle_check(x, RNN_DATA);
	size_t outputs;

	(void)handle;
	if (!r || !data)
		return CUDNN_BAD_PARAM;
	outputs = (size_t)data->steps * data->batch * r->hidden * cudnn_type_bytes(r->type) *
		  directions(r);
	if (workspace)
		*workspace = r->layers * directions(r) * LAYER_BYTES + weight_bytes(r) +
			     outputs * halves_used(r) / 2;
	/* Each layer's saved tensors, and the outputs between layers. */
	if (reserve)
		*reserve = mode == TRAINING ? outputs * (r->layers * kept(r) + r->layers - 1) + 256
					    : 0;
	return CUDNN_OK;
}

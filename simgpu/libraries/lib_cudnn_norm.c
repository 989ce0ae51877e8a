/* SPDX-License-Identifier: Apache-2.0
 *
 * cuDNN: how much room batch normalisation and CTC want. Approximations, see lib_cudnn_workspace.c.
 * Any thread.
 */
#include "lib_cudnn.h"

#define MODE_PERSISTENT 2
#define PLAIN_NORM	0 /* without an activation or an addition behind it */

static int norm_workspace(int mode, void *x, size_t *bytes)
{
	struct cudnn_shape *s = cudnn_tensor(x);

	if (!s || s->rank < 2)
		return CUDNN_BAD_PARAM;
	return cudnn_size(bytes,
			  cudnn_batch_norm_workspace(s->dims[1], mode == MODE_PERSISTENT &&
									 s->strides[1] == 1));
}

/* The mask of an activation: a bit an element. */
static int norm_reserve(int ops, void *x, size_t *bytes)
{
	struct cudnn_shape *s = cudnn_tensor(x);

	if (!s)
		return CUDNN_BAD_PARAM;
	if (ops == PLAIN_NORM)
		return cudnn_size(bytes, 0);
	return cudnn_size(bytes, cudnn_shape_bytes(s) / cudnn_type_bytes(s->type) / 8);
}

API(int, cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize, void *handle, int mode, int ops,
    void *x, void *z, void *y, void *scale, void *activation, size_t *bytes)
{
	(void)handle, (void)ops, (void)z, (void)y, (void)scale, (void)activation;
	return norm_workspace(mode, x, bytes);
}

API(int, cudnnGetBatchNormalizationBackwardExWorkspaceSize, void *handle, int mode, int ops,
    void *x, void *y, void *dy, void *dz, void *dx, void *scale, void *activation, size_t *bytes)
{
	(void)handle, (void)ops, (void)y, (void)dy, (void)dz, (void)dx, (void)scale,
		(void)activation;
	return norm_workspace(mode, x, bytes);
}

API(int, cudnnGetBatchNormalizationTrainingExReserveSpaceSize, void *handle, int mode, int ops,
    void *activation, void *x, size_t *bytes)
{
	(void)handle, (void)mode, (void)activation;
	return norm_reserve(ops, x, bytes);
}

API(int, cudnnGetNormalizationForwardTrainingWorkspaceSize, void *handle, int mode, int ops,
    int algorithm, void *x, void *z, void *y, void *scale, void *activation, void *mean,
    size_t *bytes, int groups)
{
	(void)handle, (void)ops, (void)z, (void)y, (void)scale, (void)activation, (void)mean,
		(void)groups;
	return norm_workspace(mode && algorithm ? MODE_PERSISTENT : 0, x, bytes);
}

API(int, cudnnGetNormalizationBackwardWorkspaceSize, void *handle, int mode, int ops, int algorithm,
    void *x, void *y, void *dy, void *dz, void *dx, void *scale, void *activation, void *mean,
    size_t *bytes, int groups)
{
	(void)handle, (void)ops, (void)y, (void)dy, (void)dz, (void)dx, (void)scale,
		(void)activation, (void)mean, (void)groups;
	return norm_workspace(mode && algorithm ? MODE_PERSISTENT : 0, x, bytes);
}

API(int, cudnnGetNormalizationTrainingReserveSpaceSize, void *handle, int mode, int ops,
    int algorithm, void *activation, void *x, size_t *bytes, int groups)
{
	(void)handle, (void)mode, (void)algorithm, (void)activation, (void)groups;
	return norm_reserve(ops, x, bytes);
}

/* Two tables as large as the probabilities: forward and backward sums. */
static int ctc_workspace(void *probabilities, size_t *bytes)
{
	struct cudnn_shape *s = cudnn_tensor(probabilities);

	return s ? cudnn_size(bytes, 2 * cudnn_shape_bytes(s)) : CUDNN_BAD_PARAM;
}

API(int, cudnnGetCTCLossWorkspaceSize, void *handle, void *probabilities, void *gradients,
    const int *labels, const int *label_lengths, const int *input_lengths, int algorithm, void *ctc,
    size_t *bytes)
{
	(void)handle, (void)gradients, (void)labels, (void)label_lengths, (void)input_lengths,
		(void)algorithm, (void)ctc;
	return ctc_workspace(probabilities, bytes);
}

API(int, cudnnGetCTCLossWorkspaceSize_v8, void *handle, int algorithm, void *ctc,
    void *probabilities, void *gradients, size_t *bytes)
{
	(void)handle, (void)algorithm, (void)ctc, (void)gradients;
	return ctc_workspace(probabilities, bytes);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * cuDNN: workspaces of batch normalisation and CTC, as approximations. Any thread.
 */
#include "lib_cudnn.h"

#define MODE_PERSISTENT 2
#define PLAIN_NORM	0 /* without an activation or an addition after it */

static int norm_workspace(int mode, void *x, size_t *bytes)
{
	struct cudnn_shape *s = cudnn_tensor(x);

	if (!s || s->rank < 2)
		return CUDNN_BAD_PARAM;
	return cudnn_size(bytes,
			  cudnn_batch_norm_workspace(s->dims[1], mode == MODE_PERSISTENT &&
									 s->strides[1] == 1));
}

/* The newer interface separates the algorithm from the mode. */
static int v8_mode(int mode, int algorithm)
{
	return mode && algorithm ? MODE_PERSISTENT : 0;
}

/* The mask of an activation: one bit per element. */
static int norm_reserve(int ops, void *x, size_t *bytes)
{
	struct cudnn_shape *s = cudnn_tensor(x);

	if (!s)
		return CUDNN_BAD_PARAM;
	if (ops == PLAIN_NORM)
		return cudnn_size(bytes, 0);
	return cudnn_size(bytes, cudnn_shape_bytes(s) / cudnn_type_bytes(s->type) / 8);
}

API_CALL(int, cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize,
	 norm_workspace(mode, x, bytes), UNUSED void *handle, int mode, UNUSED int ops, void *x,
	 UNUSED void *z, UNUSED void *y, UNUSED void *scale, UNUSED void *activation, size_t *bytes)
API_CALL(int, cudnnGetBatchNormalizationBackwardExWorkspaceSize, norm_workspace(mode, x, bytes),
	 UNUSED void *handle, int mode, UNUSED int ops, void *x, UNUSED void *y, UNUSED void *dy,
	 UNUSED void *dz, UNUSED void *dx, UNUSED void *scale, UNUSED void *activation,
	 size_t *bytes)
API_CALL(int, cudnnGetBatchNormalizationTrainingExReserveSpaceSize, norm_reserve(ops, x, bytes),
	 UNUSED void *handle, UNUSED int mode, int ops, UNUSED void *activation, void *x,
	 size_t *bytes)
API_CALL(int, cudnnGetNormalizationForwardTrainingWorkspaceSize,
	 norm_workspace(v8_mode(mode, algorithm), x, bytes), UNUSED void *handle, int mode,
	 UNUSED int ops, int algorithm, void *x, UNUSED void *z, UNUSED void *y, UNUSED void *scale,
	 UNUSED void *activation, UNUSED void *mean, size_t *bytes, UNUSED int groups)
API_CALL(int, cudnnGetNormalizationBackwardWorkspaceSize,
	 norm_workspace(v8_mode(mode, algorithm), x, bytes), UNUSED void *handle, int mode,
	 UNUSED int ops, int algorithm, void *x, UNUSED void *y, UNUSED void *dy, UNUSED void *dz,
	 UNUSED void *dx, UNUSED void *scale, UNUSED void *activation, UNUSED void *mean,
	 size_t *bytes, UNUSED int groups)
API_CALL(int, cudnnGetNormalizationTrainingReserveSpaceSize, norm_reserve(ops, x, bytes),
	 UNUSED void *handle, UNUSED int mode, int ops, UNUSED int algorithm,
	 UNUSED void *activation, void *x, size_t *bytes, UNUSED int groups)

/* Two tables as large as the probabilities: forward and backward sums. */
static int ctc_workspace(void *probabilities, size_t *bytes)
{
	struct cudnn_shape *s = cudnn_tensor(probabilities);

	return s ? cudnn_size(bytes, 2 * cudnn_shape_bytes(s)) : CUDNN_BAD_PARAM;
}

API_CALL(int, cudnnGetCTCLossWorkspaceSize, ctc_workspace(probabilities, bytes),
	 UNUSED void *handle, void *probabilities, UNUSED void *gradients, UNUSED const int *labels,
	 UNUSED const int *label_lengths, UNUSED const int *input_lengths, UNUSED int algorithm,
	 UNUSED void *ctc, size_t *bytes)
API_CALL(int, cudnnGetCTCLossWorkspaceSize_v8, ctc_workspace(probabilities, bytes),
	 UNUSED void *handle, UNUSED int algorithm, UNUSED void *ctc, void *probabilities,
	 UNUSED void *gradients, size_t *bytes)

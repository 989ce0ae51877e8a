/* SPDX-License-Identifier: Apache-2.0
 *
 * cuDNN: the handle, and descriptors that only need to exist. Any thread.
 */
#include "lib_cudnn.h"

#define HANDLE LIB_DNN
#define PLAIN  SIM_KIND('d', 'n', 'n', 'd')

struct dnn {
	void *stream;
};

CUDNN_OBJECT(cudnnCreate, cudnnDestroy, HANDLE, sizeof(struct dnn))
API_SETTING(cudnnSetStream, cudnnGetStream, HANDLE, dnn, void *, stream, CUDNN_BAD_PARAM,
	    CUDNN_BAD_PARAM)

/* ---- versions ---- */

API_CALL(size_t, cudnnGetVersion, lib_version_number("cudnn", 10000), void)
API_CALL(size_t, cudnnGetMaxDeviceVersion, sim_card()->major * 100 + sim_card()->minor * 10, void)
API_CALL(size_t, cudnnGetCudartVersion, sim_cuda_version(), void)

API_PROPERTY(cudnnGetProperty, "cudnn", CUDNN_BAD_PARAM)

API(const char *, cudnnGetErrorString, int status)
{
	static const struct {
		int status;
		const char *name;
	} names[] = {
		{ CUDNN_OK, "CUDNN_STATUS_SUCCESS" },
		{ CUDNN_BAD_PARAM, "CUDNN_STATUS_BAD_PARAM" },
		{ CUDNN_NULL_POINTER, "CUDNN_STATUS_BAD_PARAM_NULL_POINTER" },
		{ CUDNN_UNSUPPORTED, "CUDNN_STATUS_NOT_SUPPORTED" },
		{ CUDNN_NO_ROOM, "CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED" },
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (names[i].status == status)
			return names[i].name;
	return "unknown cuDNN status";
}

API(void, cudnnGetLastErrorString, char *message, size_t size)
{
	if (message && size)
		*message = 0;
}

API(int, cudnnQueryRuntimeError, void *handle, int *status, int mode, void *tag)
{
	(void)handle, (void)mode, (void)tag;
	if (!status)
		return CUDNN_NULL_POINTER;
	*status = CUDNN_OK;
	return CUDNN_OK;
}

/* ---- descriptors that are never queried ---- */

#define PLAIN_DESCRIPTOR(sort) \
	CUDNN_OBJECT(cudnnCreate##sort##Descriptor, cudnnDestroy##sort##Descriptor, PLAIN, 64)

PLAIN_DESCRIPTOR(Activation)
PLAIN_DESCRIPTOR(Attn)
PLAIN_DESCRIPTOR(CTCLoss)
PLAIN_DESCRIPTOR(LRN)
PLAIN_DESCRIPTOR(OpTensor)
PLAIN_DESCRIPTOR(Pooling)
PLAIN_DESCRIPTOR(ReduceTensor)
PLAIN_DESCRIPTOR(SeqData)
PLAIN_DESCRIPTOR(SpatialTransformer)
PLAIN_DESCRIPTOR(TensorTransform)

/* ---- dropout ---- */

#define DROPOUT SIM_KIND('d', 'd', 'r', 'o')

struct dropout {
	float rate;
	void *states;
	unsigned long long seed;
};

CUDNN_OBJECT(cudnnCreateDropoutDescriptor, cudnnDestroyDropoutDescriptor, DROPOUT,
	     sizeof(struct dropout))

/* A random generator's state (48 bytes) for each thread that the card holds at once. */
API_CALL(int, cudnnDropoutGetStatesSize,
	 cudnn_size(bytes, (size_t)48 * sim_card()->sms * sim_card()->threads_per_sm),
	 UNUSED void *handle, size_t *bytes)

/* One bit per element. */
API(int, cudnnDropoutGetReserveSpaceSize, void *x, size_t *bytes)
{
	struct cudnn_shape *s = cudnn_tensor(x);

	if (!s)
		return CUDNN_BAD_PARAM;
	return cudnn_size(bytes, cudnn_shape_bytes(s) / cudnn_type_bytes(s->type) / 8);
}

API(int, cudnnSetDropoutDescriptor, void *d, void *handle, float rate, void *states, size_t bytes,
    unsigned long long seed)
{
	struct dropout *s = sim_handle_check(d, DROPOUT);

	(void)handle, (void)bytes;
	if (!s)
		return CUDNN_BAD_PARAM;
	*s = (struct dropout){ rate, states, seed };
	return CUDNN_OK;
}

API_CALL(int, cudnnRestoreDropoutDescriptor,
	 cudnnSetDropoutDescriptor(d, handle, rate, states, bytes, seed), void *d, void *handle,
	 float rate, void *states, size_t bytes, unsigned long long seed)

API(int, cudnnGetDropoutDescriptor, void *d, void *handle, float *rate, void **states,
    unsigned long long *seed)
{
	struct dropout *s = sim_handle_check(d, DROPOUT);

	(void)handle;
	if (!s || !rate || !states || !seed)
		return CUDNN_BAD_PARAM;
	*rate = s->rate;
	*states = s->states;
	*seed = s->seed;
	return CUDNN_OK;
}

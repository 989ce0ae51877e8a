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

API(int, cudnnCreate, struct dnn **out)
{
	if (!out)
		return CUDNN_NULL_POINTER;
	*out = sim_handle(HANDLE, sizeof(**out));
	return *out ? CUDNN_OK : CUDNN_NO_ROOM;
}

API(int, cudnnDestroy, void *handle)
{
	sim_handle_free(sim_handle_check(handle, HANDLE));
	return CUDNN_OK;
}

API(int, cudnnSetStream, void *handle, void *stream)
{
	struct dnn *d = sim_handle_check(handle, HANDLE);

	if (!d)
		return CUDNN_BAD_PARAM;
	d->stream = stream;
	return CUDNN_OK;
}

API(int, cudnnGetStream, void *handle, void **stream)
{
	struct dnn *d = sim_handle_check(handle, HANDLE);

	if (!d || !stream)
		return CUDNN_BAD_PARAM;
	*stream = d->stream;
	return CUDNN_OK;
}

/* ---- who we are ---- */

API(size_t, cudnnGetVersion, void)
{
	return lib_version("cudnn", 0) * 10000 + lib_version("cudnn", 1) * 100 +
	       lib_version("cudnn", 2);
}

API(size_t, cudnnGetMaxDeviceVersion, void)
{
	return sim_card()->major * 100 + sim_card()->minor * 10;
}

API(size_t, cudnnGetCudartVersion, void)
{
	return sim_cuda_version();
}

API(int, cudnnGetProperty, int part, int *out)
{
	if (!out || part < 0 || part > 2)
		return CUDNN_BAD_PARAM;
	*out = lib_version("cudnn", part);
	return CUDNN_OK;
}

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

/* ---- descriptors that nothing is ever asked of ---- */

#define PLAIN_DESCRIPTOR(sort)                               \
	API(int, cudnnCreate##sort##Descriptor, void **out)  \
	{                                                    \
		if (!out)                                    \
			return CUDNN_NULL_POINTER;           \
		*out = sim_handle(PLAIN, 64);                \
		return *out ? CUDNN_OK : CUDNN_NO_ROOM;      \
	}                                                    \
	API(int, cudnnDestroy##sort##Descriptor, void *d)    \
	{                                                    \
		sim_handle_free(sim_handle_check(d, PLAIN)); \
		return CUDNN_OK;                             \
	}

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

API(int, cudnnCreateDropoutDescriptor, void **out)
{
	if (!out)
		return CUDNN_NULL_POINTER;
	*out = sim_handle(DROPOUT, sizeof(struct dropout));
	return *out ? CUDNN_OK : CUDNN_NO_ROOM;
}

API(int, cudnnDestroyDropoutDescriptor, void *d)
{
	sim_handle_free(sim_handle_check(d, DROPOUT));
	return CUDNN_OK;
}

/* A random generator's state (48 bytes) for each thread that the card holds at once. */
API(int, cudnnDropoutGetStatesSize, void *handle, size_t *bytes)
{
	(void)handle;
	return cudnn_size(bytes, (size_t)48 * sim_card()->sms * sim_card()->threads_per_sm);
}

/* A bit an element. */
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

API(int, cudnnRestoreDropoutDescriptor, void *d, void *handle, float rate, void *states,
    size_t bytes, unsigned long long seed)
{
	return cudnnSetDropoutDescriptor(d, handle, rate, states, bytes, seed);
}

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

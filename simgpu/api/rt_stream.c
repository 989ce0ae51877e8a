/* SPDX-License-Identifier: Apache-2.0
 *
 * The runtime's streams, events and recordings.
 */
#include "driver.h"

RT_CALL(cudaStreamCreate, stream_create((void **)stream, 0, 0), cudaStream_t *stream)
RT_CALL(cudaStreamCreateWithFlags, stream_create((void **)stream, flags, 0), cudaStream_t *stream,
	unsigned int flags)
RT_CALL(cudaStreamCreateWithPriority, stream_create((void **)stream, flags, priority),
	cudaStream_t *stream, unsigned int flags, int priority)
RT_CALL(cudaStreamDestroy, stream_destroy(stream), cudaStream_t stream)
RT_CALL(cudaStreamSynchronize, stream_sync(stream), cudaStream_t stream)
RT_CALL(cudaStreamQuery, stream_query(stream), cudaStream_t stream)
RT_CALL(cudaStreamWaitEvent, stream_wait(stream, event), cudaStream_t stream, cudaEvent_t event,
	UNUSED unsigned int flags)
RT_CALL(cudaStreamGetDevice, stream_device(stream, device), cudaStream_t stream, int *device)
RT_CALL(cudaStreamGetFlags, stream_flags(stream, flags), cudaStream_t stream, unsigned int *flags)
RT_CALL(cudaStreamGetPriority, stream_priority(stream, priority), cudaStream_t stream,
	int *priority)
RT_CALL(cudaStreamGetId, stream_id(stream, id), cudaStream_t stream, unsigned long long *id)

/* ---- recordings ---- */

RT_CALL(cudaStreamBeginCapture, driver()->cuStreamBeginCapture(stream, (CUstreamCaptureMode)mode),
	cudaStream_t stream, enum cudaStreamCaptureMode mode)

SIM_API cudaError_t cudaStreamBeginCaptureToGraph(cudaStream_t stream, cudaGraph_t graph,
						  const cudaGraphNode_t *deps,
						  const cudaGraphEdgeData *edges, size_t n,
						  enum cudaStreamCaptureMode mode)
{
	int result;

	(void)edges;
	RT_ENTER();
	result = graph ? capture_begin(stream, (struct sim_graph *)graph, mode) : SIM_INVALID;
	return RT(result || !n ? result : capture_depend(stream, (void *const *)deps, n, true));
}

RT_CALL(cudaStreamEndCapture, driver()->cuStreamEndCapture(stream, graph), cudaStream_t stream,
	cudaGraph_t *graph)

SIM_API cudaError_t cudaStreamIsCapturing(cudaStream_t stream, enum cudaStreamCaptureStatus *status)
{
	int value = 0, result;

	RT_ENTER();
	result = capture_info(stream, &value, NULL);
	if (status)
		*status = (enum cudaStreamCaptureStatus)value;
	return RT(result);
}

static int info(void *stream, int *status, unsigned long long *id, void **graph, const void **deps,
		const void **edges, size_t *n)
{
	struct capture c = { 0 };
	int value = 0, result = capture_info(stream, &value, &c);

	if (result || !status)
		return result ? result : SIM_INVALID;
	*status = value;
	if (value == 1 && id)
		*id = c.id;
	if (value == 1 && graph)
		*graph = c.graph;
	capture_tell(&c, deps, edges, n);
	return SIM_OK;
}

/* CUDA 12's _v3 function is the unversioned function of CUDA 13. */
SIM_API cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream,
					     enum cudaStreamCaptureStatus *status,
					     unsigned long long *id, cudaGraph_t *graph,
					     const cudaGraphNode_t **deps,
					     const cudaGraphEdgeData **edges, size_t *n)
{
	RT_ENTER();
	if (sim_cuda_major() < 13)
		return RT(info(stream, (int *)status, id, NULL, NULL, NULL, NULL));
	return RT(info(stream, (int *)status, id, (void **)graph, (const void **)deps,
		       (const void **)edges, n));
}

cudaError_t cudaStreamGetCaptureInfo_v2(void *, int *, unsigned long long *, void **, const void **,
					size_t *);
cudaError_t cudaStreamGetCaptureInfo_v3(void *, int *, unsigned long long *, void **, const void **,
					const void **, size_t *);

RT_CALL(cudaStreamGetCaptureInfo_v2, info(stream, status, id, graph, deps, NULL, n), void *stream,
	int *status, unsigned long long *id, void **graph, const void **deps, size_t *n)
RT_CALL(cudaStreamGetCaptureInfo_v3, info(stream, status, id, graph, deps, edges, n), void *stream,
	int *status, unsigned long long *id, void **graph, const void **deps, const void **edges,
	size_t *n)

cudaError_t cudaStreamUpdateCaptureDependencies_v2(cudaStream_t, cudaGraphNode_t *,
						   const cudaGraphEdgeData *, size_t, unsigned int);

static int depend(void *stream, cudaGraphNode_t *nodes, size_t n, unsigned int flags)
{
	return flags > 1 ? SIM_INVALID
			 : capture_depend(stream, (void *const *)nodes, n, flags == 1);
}

/* CUDA 12's first form has no edge data: the count and the flags come one place earlier. */
SIM_API cudaError_t cudaStreamUpdateCaptureDependencies(cudaStream_t stream, cudaGraphNode_t *nodes,
							const cudaGraphEdgeData *edges, size_t n,
							unsigned int flags)
{
	RT_ENTER();
	if (sim_cuda_major() < 13)
		return RT(depend(stream, nodes, (size_t)edges, (unsigned int)n));
	return RT(depend(stream, nodes, n, flags));
}

RT_CALL(cudaStreamUpdateCaptureDependencies_v2, depend(stream, nodes, n, flags),
	cudaStream_t stream, cudaGraphNode_t *nodes, UNUSED const cudaGraphEdgeData *edges,
	size_t n, unsigned int flags)
RT_PLAIN(cudaThreadExchangeStreamCaptureMode, capture_thread_mode((int *)mode),
	 enum cudaStreamCaptureMode *mode)

/* ---- events ---- */

RT_CALL(cudaEventCreate, event_create((void **)event, 0), cudaEvent_t *event)
RT_CALL(cudaEventCreateWithFlags, event_create((void **)event, flags), cudaEvent_t *event,
	unsigned int flags)
RT_CALL(cudaEventDestroy, event_destroy(event), cudaEvent_t event)
RT_CALL(cudaEventRecord, event_record(event, stream), cudaEvent_t event, cudaStream_t stream)
RT_CALL(cudaEventRecordWithFlags,
	flags & 1 ? event_record_external(event, stream) : event_record(event, stream),
	cudaEvent_t event, cudaStream_t stream, unsigned int flags)
RT_CALL(cudaEventQuery, event_query(event), cudaEvent_t event)
RT_CALL(cudaEventSynchronize, event_sync(event), cudaEvent_t event)
RT_CALL(cudaEventElapsedTime, event_elapsed(ms, start, end), float *ms, cudaEvent_t start,
	cudaEvent_t end)
RT_CALL(cudaIpcGetEventHandle, event_share(event, handle), cudaIpcEventHandle_t *handle,
	cudaEvent_t event)
RT_CALL(cudaIpcOpenEventHandle, event_open((void **)event, &handle), cudaEvent_t *event,
	cudaIpcEventHandle_t handle)

/* ---- host functions ---- */

RT_CALL(cudaLaunchHostFunc, launch_host(stream, fn, data), cudaStream_t stream, cudaHostFn_t fn,
	void *data)

SIM_API cudaError_t cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t fn, void *data,
					  unsigned int flags)
{
	RT_ENTER();
	if (!fn || flags || stream_valid(stream))
		return RT(SIM_INVALID);
	stream_work(stream, NODE_HOST, 0);
	fn(stream, cudaSuccess, data);
	return RT(SIM_OK);
}

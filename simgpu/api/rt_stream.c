/* SPDX-License-Identifier: Apache-2.0
 *
 * The runtime's streams, events and recordings.
 */
#include "cudart.h"

SIM_API cudaError_t cudaStreamCreate(cudaStream_t *stream)
{
	RT_ENTER();
	return RT(stream_create((void **)stream, 0, 0));
}

SIM_API cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned int flags)
{
	RT_ENTER();
	return RT(stream_create((void **)stream, flags, 0));
}

SIM_API cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned int flags,
						 int priority)
{
	RT_ENTER();
	return RT(stream_create((void **)stream, flags, priority));
}

SIM_API cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
	RT_ENTER();
	return RT(stream_destroy(stream));
}

SIM_API cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
	RT_ENTER();
	return RT(stream_sync(stream));
}

SIM_API cudaError_t cudaStreamQuery(cudaStream_t stream)
{
	RT_ENTER();
	return RT(stream_query(stream));
}

SIM_API cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned int flags)
{
	(void)flags;
	RT_ENTER();
	return RT(stream_wait(stream, event));
}

SIM_API cudaError_t cudaStreamGetDevice(cudaStream_t stream, int *device)
{
	RT_ENTER();
	return RT(stream_device(stream, device));
}

SIM_API cudaError_t cudaStreamGetFlags(cudaStream_t stream, unsigned int *flags)
{
	RT_ENTER();
	return RT(stream_flags(stream, flags));
}

SIM_API cudaError_t cudaStreamGetPriority(cudaStream_t stream, int *priority)
{
	RT_ENTER();
	return RT(stream_priority(stream, priority));
}

SIM_API cudaError_t cudaStreamGetId(cudaStream_t stream, unsigned long long *id)
{
	RT_ENTER();
	return RT(stream_id(stream, id));
}

/* ---- recordings ---- */

SIM_API cudaError_t cudaStreamBeginCapture(cudaStream_t stream, enum cudaStreamCaptureMode mode)
{
	RT_ENTER();
	return RT(capture_begin(stream, NULL, mode));
}

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

SIM_API cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph)
{
	RT_ENTER();
	return RT(capture_end(stream, (struct sim_graph **)graph));
}

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

SIM_API cudaError_t cudaStreamGetCaptureInfo_v2(void *stream, int *status, unsigned long long *id,
						void **graph, const void **deps, size_t *n)
{
	RT_ENTER();
	return RT(info(stream, status, id, graph, deps, NULL, n));
}

SIM_API cudaError_t cudaStreamGetCaptureInfo_v3(void *stream, int *status, unsigned long long *id,
						void **graph, const void **deps, const void **edges,
						size_t *n)
{
	RT_ENTER();
	return RT(info(stream, status, id, graph, deps, edges, n));
}

cudaError_t cudaStreamUpdateCaptureDependencies_v2(cudaStream_t, cudaGraphNode_t *,
						   const cudaGraphEdgeData *, size_t, unsigned int);

static int depend(void *stream, cudaGraphNode_t *nodes, size_t n, unsigned int flags)
{
	return flags > 1 ? SIM_INVALID
			 : capture_depend(stream, (void *const *)nodes, n, flags == 1);
}

/* CUDA 12's first form has no edge data: the count and the flags stand one place earlier. */
SIM_API cudaError_t cudaStreamUpdateCaptureDependencies(cudaStream_t stream, cudaGraphNode_t *nodes,
							const cudaGraphEdgeData *edges, size_t n,
							unsigned int flags)
{
	RT_ENTER();
	if (sim_cuda_major() < 13)
		return RT(depend(stream, nodes, (size_t)edges, (unsigned int)n));
	return RT(depend(stream, nodes, n, flags));
}

SIM_API cudaError_t cudaStreamUpdateCaptureDependencies_v2(cudaStream_t stream,
							   cudaGraphNode_t *nodes,
							   const cudaGraphEdgeData *edges, size_t n,
							   unsigned int flags)
{
	(void)edges;
	RT_ENTER();
	return RT(depend(stream, nodes, n, flags));
}

SIM_API cudaError_t cudaThreadExchangeStreamCaptureMode(enum cudaStreamCaptureMode *mode)
{
	return RT(capture_thread_mode((int *)mode));
}

/* ---- events ---- */

SIM_API cudaError_t cudaEventCreate(cudaEvent_t *event)
{
	RT_ENTER();
	return RT(event_create((void **)event, 0));
}

SIM_API cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned int flags)
{
	RT_ENTER();
	return RT(event_create((void **)event, flags));
}

SIM_API cudaError_t cudaEventDestroy(cudaEvent_t event)
{
	RT_ENTER();
	return RT(event_destroy(event));
}

SIM_API cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
	RT_ENTER();
	return RT(event_record(event, stream));
}

SIM_API cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream,
					     unsigned int flags)
{
	RT_ENTER();
	return RT(flags & 1 ? event_record_external(event, stream) : event_record(event, stream));
}

SIM_API cudaError_t cudaEventQuery(cudaEvent_t event)
{
	RT_ENTER();
	return RT(event_query(event));
}

SIM_API cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
	RT_ENTER();
	return RT(event_sync(event));
}

SIM_API cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t start, cudaEvent_t end)
{
	RT_ENTER();
	return RT(event_elapsed(ms, start, end));
}

SIM_API cudaError_t cudaIpcGetEventHandle(cudaIpcEventHandle_t *handle, cudaEvent_t event)
{
	RT_ENTER();
	return RT(event_share(event, handle));
}

SIM_API cudaError_t cudaIpcOpenEventHandle(cudaEvent_t *event, cudaIpcEventHandle_t handle)
{
	RT_ENTER();
	return RT(event_open((void **)event, &handle));
}

/* ---- host functions ---- */

SIM_API cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t fn, void *data)
{
	RT_ENTER();
	return RT(launch_host(stream, fn, data));
}

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

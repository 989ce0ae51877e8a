/* SPDX-License-Identifier: Apache-2.0
 *
 * The driver's streams, events, recordings and graphs: the runtime's handles under other names.
 */
#include <string.h>
#include "cudart.h"

SIM_API CUresult cuStreamCreate(CUstream *stream, unsigned int flags)
{
	DRV_ENTER();
	return DRV(stream_create((void **)stream, flags, 0));
}

SIM_API CUresult cuStreamCreateWithPriority(CUstream *stream, unsigned int flags, int priority)
{
	DRV_ENTER();
	return DRV(stream_create((void **)stream, flags, priority));
}

SIM_API CUresult cuStreamDestroy_v2(CUstream stream)
{
	return DRV(stream_destroy(stream));
}

SIM_API CUresult cuStreamDestroy(CUstream stream)
{
	return DRV(stream_destroy(stream));
}

SIM_API CUresult cuStreamSynchronize(CUstream stream)
{
	return DRV(stream_sync(stream));
}

SIM_API CUresult cuStreamQuery(CUstream stream)
{
	return DRV(stream_query(stream));
}

SIM_API CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned int flags)
{
	(void)flags;
	return DRV(stream_wait(stream, event));
}

SIM_API CUresult cuStreamGetFlags(CUstream stream, unsigned int *flags)
{
	return DRV(stream_flags(stream, flags));
}

SIM_API CUresult cuStreamGetPriority(CUstream stream, int *priority)
{
	return DRV(stream_priority(stream, priority));
}

SIM_API CUresult cuStreamGetId(CUstream stream, unsigned long long *id)
{
	return DRV(stream_id(stream, id));
}

SIM_API CUresult cuStreamGetDevice(CUstream stream, CUdevice *device)
{
	return DRV(stream_device(stream, device));
}

SIM_API CUresult cuStreamGetCtx(CUstream stream, CUcontext *ctx)
{
	*ctx = (CUcontext)stream_ctx(stream);
	return DRV(stream_valid(stream));
}

SIM_API CUresult cuStreamGetCtx_v2(CUstream stream, CUcontext *ctx, CUgreenCtx *green)
{
	if (green)
		*green = NULL;
	return cuStreamGetCtx(stream, ctx);
}

SIM_API CUresult cuLaunchHostFunc(CUstream stream, CUhostFn fn, void *data)
{
	return DRV(launch_host(stream, fn, data));
}

SIM_API CUresult cuStreamAddCallback(CUstream stream, CUstreamCallback fn, void *data,
				     unsigned int flags)
{
	if (!fn || flags || stream_valid(stream))
		return CUDA_ERROR_INVALID_VALUE;
	fn(stream, CUDA_SUCCESS, data);
	return CUDA_SUCCESS;
}

/* ---- recordings ---- */

SIM_API CUresult cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode mode)
{
	return DRV(capture_begin(stream, NULL, mode));
}

SIM_API CUresult cuStreamBeginCapture(CUstream stream)
{
	return DRV(capture_begin(stream, NULL, 0));
}

SIM_API CUresult cuStreamEndCapture(CUstream stream, CUgraph *graph)
{
	return DRV(capture_end(stream, (struct sim_graph **)graph));
}

SIM_API CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus *status)
{
	return DRV(cudaStreamIsCapturing(stream, (enum cudaStreamCaptureStatus *)status));
}

SIM_API CUresult cuStreamGetCaptureInfo(CUstream stream, CUstreamCaptureStatus *status,
					cuuint64_t *id)
{
	struct capture c = { 0 };
	int value = 0, result = capture_info(stream, &value, &c);

	*status = (CUstreamCaptureStatus)value;
	if (id)
		*id = c.id;
	return DRV(result);
}

SIM_API CUresult cuStreamGetCaptureInfo_v3(CUstream stream, CUstreamCaptureStatus *status,
					   cuuint64_t *id, CUgraph *graph, const CUgraphNode **deps,
					   const CUgraphEdgeData **edges, size_t *n)
{
	struct capture c = { 0 };
	int value = 0, result = capture_info(stream, &value, &c);

	*status = (CUstreamCaptureStatus)value;
	if (id)
		*id = c.id;
	if (graph)
		*graph = (CUgraph)c.graph;
	capture_tell(&c, (const void **)deps, (const void **)edges, n);
	return DRV(result);
}

SIM_API CUresult cuStreamGetCaptureInfo_v2(CUstream stream, CUstreamCaptureStatus *status,
					   cuuint64_t *id, CUgraph *graph, const CUgraphNode **deps,
					   size_t *n)
{
	return cuStreamGetCaptureInfo_v3(stream, status, id, graph, deps, NULL, n);
}

SIM_API CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode)
{
	return DRV(capture_thread_mode((int *)mode));
}

/* ---- events ---- */

SIM_API CUresult cuEventCreate(CUevent *event, unsigned int flags)
{
	DRV_ENTER();
	return DRV(event_create((void **)event, flags));
}

SIM_API CUresult cuEventDestroy_v2(CUevent event)
{
	return DRV(event_destroy(event));
}

SIM_API CUresult cuEventDestroy(CUevent event)
{
	return DRV(event_destroy(event));
}

SIM_API CUresult cuEventRecord(CUevent event, CUstream stream)
{
	return DRV(event_record(event, stream));
}

SIM_API CUresult cuEventRecordWithFlags(CUevent event, CUstream stream, unsigned int flags)
{
	return DRV(flags & 1 ? event_record_external(event, stream) : event_record(event, stream));
}

SIM_API CUresult cuEventQuery(CUevent event)
{
	return DRV(event_query(event));
}

SIM_API CUresult cuEventSynchronize(CUevent event)
{
	return DRV(event_sync(event));
}

SIM_API CUresult cuEventElapsedTime(float *ms, CUevent start, CUevent end)
{
	return DRV(event_elapsed(ms, start, end));
}

SIM_API CUresult cuEventElapsedTime_v2(float *ms, CUevent start, CUevent end)
{
	return DRV(event_elapsed(ms, start, end));
}

SIM_API CUresult cuIpcGetEventHandle(CUipcEventHandle *handle, CUevent event)
{
	return DRV(event_share(event, handle));
}

SIM_API CUresult cuIpcOpenEventHandle(CUevent *event, CUipcEventHandle handle)
{
	return DRV(event_open((void **)event, &handle));
}

/* ---- graphs ---- */

SIM_API CUresult cuGraphCreate(CUgraph *graph, unsigned int flags)
{
	(void)flags;
	return DRV(graph ? graph_create((struct sim_graph **)graph) : SIM_INVALID);
}

SIM_API CUresult cuGraphDestroy(CUgraph graph)
{
	return DRV(graph_destroy((struct sim_graph *)graph));
}

SIM_API CUresult cuGraphInstantiateWithFlags(CUgraphExec *exec, CUgraph graph,
					     unsigned long long flags)
{
	(void)flags;
	return DRV(graph_instantiate((void **)exec, (struct sim_graph *)graph));
}

SIM_API CUresult cuGraphInstantiateWithParams(CUgraphExec *exec, CUgraph graph,
					      CUDA_GRAPH_INSTANTIATE_PARAMS *params)
{
	params->result_out = CUDA_GRAPH_INSTANTIATE_SUCCESS;
	return cuGraphInstantiateWithFlags(exec, graph, 0);
}

SIM_API CUresult cuGraphExecDestroy(CUgraphExec exec)
{
	return DRV(graph_exec_destroy(exec));
}

SIM_API CUresult cuGraphLaunch(CUgraphExec exec, CUstream stream)
{
	DRV_ENTER();
	return DRV(cudaGraphLaunch(exec, stream));
}

SIM_API CUresult cuGraphGetNodes(CUgraph graph, CUgraphNode *nodes, size_t *n)
{
	return DRV(graph_nodes((struct sim_graph *)graph, (void **)nodes, n));
}

SIM_API CUresult cuGraphGetRootNodes(CUgraph graph, CUgraphNode *nodes, size_t *n)
{
	return DRV(graph_roots((struct sim_graph *)graph, (void **)nodes, n));
}

SIM_API CUresult cuGraphNodeGetType(CUgraphNode node, CUgraphNodeType *type)
{
	return DRV(graph_node_type(node, (int *)type));
}

SIM_API CUresult cuGraphAddEmptyNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *deps,
				     size_t n)
{
	return DRV(cudaGraphAddEmptyNode(node, graph, deps, n));
}

/* ---- edges ---- */

static int edges_of(CUgraph graph, CUgraphNode *from, CUgraphNode *to, CUgraphEdgeData *edges,
		    size_t *n)
{
	if (edges && n)
		memset(edges, 0, *n * sizeof(*edges));
	return graph_edges((struct sim_graph *)graph, (void **)from, (void **)to, n);
}

static int nodes_of(int (*which)(void *, void **, size_t *), CUgraphNode node, CUgraphNode *nodes,
		    CUgraphEdgeData *edges, size_t *n)
{
	if (edges && n)
		memset(edges, 0, *n * sizeof(*edges));
	return which(node, (void **)nodes, n);
}

SIM_API CUresult cuGraphGetEdges(CUgraph graph, CUgraphNode *from, CUgraphNode *to, size_t *n)
{
	return DRV(edges_of(graph, from, to, NULL, n));
}

SIM_API CUresult cuGraphGetEdges_v2(CUgraph graph, CUgraphNode *from, CUgraphNode *to,
				    CUgraphEdgeData *edges, size_t *n)
{
	return DRV(edges_of(graph, from, to, edges, n));
}

SIM_API CUresult cuGraphNodeGetDependencies(CUgraphNode node, CUgraphNode *nodes, size_t *n)
{
	return DRV(nodes_of(graph_before, node, nodes, NULL, n));
}

SIM_API CUresult cuGraphNodeGetDependencies_v2(CUgraphNode node, CUgraphNode *nodes,
					       CUgraphEdgeData *edges, size_t *n)
{
	return DRV(nodes_of(graph_before, node, nodes, edges, n));
}

SIM_API CUresult cuGraphNodeGetDependentNodes(CUgraphNode node, CUgraphNode *nodes, size_t *n)
{
	return DRV(nodes_of(graph_after, node, nodes, NULL, n));
}

SIM_API CUresult cuGraphNodeGetDependentNodes_v2(CUgraphNode node, CUgraphNode *nodes,
						 CUgraphEdgeData *edges, size_t *n)
{
	return DRV(nodes_of(graph_after, node, nodes, edges, n));
}

SIM_API CUresult cuGraphAddDependencies_v2(CUgraph graph, const CUgraphNode *from,
					   const CUgraphNode *to, const CUgraphEdgeData *edges,
					   size_t n)
{
	int result = graph_check(graph) && (!n || (from && to)) ? SIM_OK : SIM_INVALID;

	(void)edges;
	for (size_t i = 0; !result && i < n; i++)
		result = graph_depend(from[i], to[i]);
	return DRV(result);
}

SIM_API CUresult cuGraphAddDependencies(CUgraph graph, const CUgraphNode *from,
					const CUgraphNode *to, size_t n)
{
	return cuGraphAddDependencies_v2(graph, from, to, NULL, n);
}

SIM_API CUresult cuGraphDebugDotPrint(CUgraph graph, const char *path, unsigned int flags)
{
	(void)flags;
	return DRV(graph_draw((struct sim_graph *)graph, path));
}

SIM_API CUresult cuStreamUpdateCaptureDependencies(CUstream stream, CUgraphNode *nodes, size_t n,
						   unsigned int flags)
{
	return flags > 1 ? CUDA_ERROR_INVALID_VALUE
			 : DRV(capture_depend(stream, (void *const *)nodes, n, flags == 1));
}

SIM_API CUresult cuStreamUpdateCaptureDependencies_v2(CUstream stream, CUgraphNode *nodes,
						      const CUgraphEdgeData *edges, size_t n,
						      unsigned int flags)
{
	(void)edges;
	return cuStreamUpdateCaptureDependencies(stream, nodes, n, flags);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * The driver's streams, events, recordings and graphs: the runtime's handles under other names.
 */
#include <string.h>
#include "cudart.h"

DRV_CALL(cuStreamCreate, stream_create((void **)stream, flags, 0), CUstream *stream,
	 unsigned int flags)
DRV_CALL(cuStreamCreateWithPriority, stream_create((void **)stream, flags, priority),
	 CUstream *stream, unsigned int flags, int priority)
DRV_PLAIN(cuStreamDestroy_v2, stream_destroy(stream), CUstream stream)
DRV_PLAIN(cuStreamSynchronize, stream_sync(stream), CUstream stream)
DRV_PLAIN(cuStreamQuery, stream_query(stream), CUstream stream)
DRV_PLAIN(cuStreamWaitEvent, stream_wait(stream, event), CUstream stream, CUevent event,
	  UNUSED unsigned int flags)
DRV_PLAIN(cuStreamGetFlags, stream_flags(stream, flags), CUstream stream, unsigned int *flags)
DRV_PLAIN(cuStreamGetPriority, stream_priority(stream, priority), CUstream stream, int *priority)
DRV_PLAIN(cuStreamGetId, stream_id(stream, id), CUstream stream, unsigned long long *id)
DRV_PLAIN(cuStreamGetDevice, stream_device(stream, device), CUstream stream, CUdevice *device)

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

DRV_PLAIN(cuLaunchHostFunc, launch_host(stream, fn, data), CUstream stream, CUhostFn fn, void *data)

SIM_API CUresult cuStreamAddCallback(CUstream stream, CUstreamCallback fn, void *data,
				     unsigned int flags)
{
	if (!fn || flags || stream_valid(stream))
		return CUDA_ERROR_INVALID_VALUE;
	fn(stream, CUDA_SUCCESS, data);
	return CUDA_SUCCESS;
}

/* ---- recordings ---- */

DRV_PLAIN(cuStreamBeginCapture_v2, capture_begin(stream, NULL, mode), CUstream stream,
	  CUstreamCaptureMode mode)
DRV_PLAIN(cuStreamBeginCapture, capture_begin(stream, NULL, 0), CUstream stream)
DRV_PLAIN(cuStreamEndCapture, capture_end(stream, (struct sim_graph **)graph), CUstream stream,
	  CUgraph *graph)
DRV_PLAIN(cuStreamIsCapturing,
	  cudaStreamIsCapturing(stream, (enum cudaStreamCaptureStatus *)status), CUstream stream,
	  CUstreamCaptureStatus *status)

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

DRV_PLAIN(cuThreadExchangeStreamCaptureMode, capture_thread_mode((int *)mode),
	  CUstreamCaptureMode *mode)

/* ---- events ---- */

DRV_CALL(cuEventCreate, event_create((void **)event, flags), CUevent *event, unsigned int flags)
DRV_PLAIN(cuEventDestroy_v2, event_destroy(event), CUevent event)
DRV_PLAIN(cuEventRecord, event_record(event, stream), CUevent event, CUstream stream)
DRV_PLAIN(cuEventRecordWithFlags,
	  flags & 1 ? event_record_external(event, stream) : event_record(event, stream),
	  CUevent event, CUstream stream, unsigned int flags)
DRV_PLAIN(cuEventQuery, event_query(event), CUevent event)
DRV_PLAIN(cuEventSynchronize, event_sync(event), CUevent event)
DRV_PLAIN(cuEventElapsedTime, event_elapsed(ms, start, end), float *ms, CUevent start, CUevent end)
DRV_PLAIN(cuIpcGetEventHandle, event_share(event, handle), CUipcEventHandle *handle, CUevent event)
DRV_PLAIN(cuIpcOpenEventHandle, event_open((void **)event, &handle), CUevent *event,
	  CUipcEventHandle handle)

/* ---- graphs ---- */

DRV_PLAIN(cuGraphCreate, graph ? graph_create((struct sim_graph **)graph) : SIM_INVALID,
	  CUgraph *graph, UNUSED unsigned int flags)
DRV_PLAIN(cuGraphDestroy, graph_destroy((struct sim_graph *)graph), CUgraph graph)
DRV_PLAIN(cuGraphInstantiateWithFlags,
	  graph_instantiate((void **)exec, (struct sim_graph *)graph, flags), CUgraphExec *exec,
	  CUgraph graph, unsigned long long flags)

SIM_API CUresult cuGraphInstantiateWithParams(CUgraphExec *exec, CUgraph graph,
					      CUDA_GRAPH_INSTANTIATE_PARAMS *params)
{
	if (!params)
		return CUDA_ERROR_INVALID_VALUE;
	params->result_out = CUDA_GRAPH_INSTANTIATE_SUCCESS;
	params->hErrNode_out = NULL;
	return cuGraphInstantiateWithFlags(exec, graph, params->flags);
}

DRV_PLAIN(cuGraphExecDestroy, graph_exec_destroy(exec), CUgraphExec exec)

SIM_API CUresult cuGraphLaunch(CUgraphExec exec, CUstream stream)
{
	DRV_ENTER();
	if (stream_valid(stream))
		return DRV(SIM_BAD_HANDLE);
	if (stream_captures(stream, &(struct node_spec){ .type = NODE_GRAPH }))
		return DRV(SIM_OK);
	return DRV(graph_launch(exec, stream));
}

DRV_PLAIN(cuGraphGetNodes, graph_nodes((struct sim_graph *)graph, (void **)nodes, n), CUgraph graph,
	  CUgraphNode *nodes, size_t *n)
DRV_PLAIN(cuGraphGetRootNodes, graph_roots((struct sim_graph *)graph, (void **)nodes, n),
	  CUgraph graph, CUgraphNode *nodes, size_t *n)
DRV_PLAIN(cuGraphNodeGetType, graph_node_type(node, (int *)type), CUgraphNode node,
	  CUgraphNodeType *type)
DRV_PLAIN(cuGraphAddEmptyNode, cudaGraphAddEmptyNode(node, graph, deps, n), CUgraphNode *node,
	  CUgraph graph, const CUgraphNode *deps, size_t n)

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

DRV_PLAIN(cuGraphGetEdges, edges_of(graph, from, to, NULL, n), CUgraph graph, CUgraphNode *from,
	  CUgraphNode *to, size_t *n)
DRV_PLAIN(cuGraphGetEdges_v2, edges_of(graph, from, to, edges, n), CUgraph graph, CUgraphNode *from,
	  CUgraphNode *to, CUgraphEdgeData *edges, size_t *n)
DRV_PLAIN(cuGraphNodeGetDependencies, nodes_of(graph_before, node, nodes, NULL, n),
	  CUgraphNode node, CUgraphNode *nodes, size_t *n)
DRV_PLAIN(cuGraphNodeGetDependencies_v2, nodes_of(graph_before, node, nodes, edges, n),
	  CUgraphNode node, CUgraphNode *nodes, CUgraphEdgeData *edges, size_t *n)
DRV_PLAIN(cuGraphNodeGetDependentNodes, nodes_of(graph_after, node, nodes, NULL, n),
	  CUgraphNode node, CUgraphNode *nodes, size_t *n)
DRV_PLAIN(cuGraphNodeGetDependentNodes_v2, nodes_of(graph_after, node, nodes, edges, n),
	  CUgraphNode node, CUgraphNode *nodes, CUgraphEdgeData *edges, size_t *n)

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

DRV_PLAIN(cuGraphDebugDotPrint, graph_draw((struct sim_graph *)graph, path), CUgraph graph,
	  const char *path, UNUSED unsigned int flags)

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

/* SPDX-License-Identifier: Apache-2.0
 *
 * The runtime's graphs.
 */
#include <string.h>
#include "cudart.h"

#define GRAPH(g) ((struct sim_graph *)(g))

SIM_API cudaError_t cudaGraphCreate(cudaGraph_t *graph, unsigned int flags)
{
	(void)flags;
	return RT(graph ? graph_create((struct sim_graph **)graph) : SIM_INVALID);
}

SIM_API cudaError_t cudaGraphDestroy(cudaGraph_t graph)
{
	return RT(graph_destroy(GRAPH(graph)));
}

SIM_API cudaError_t cudaGraphInstantiate(cudaGraphExec_t *exec, cudaGraph_t graph,
					 unsigned long long flags)
{
	(void)flags;
	return RT(graph_instantiate((void **)exec, GRAPH(graph)));
}

SIM_API cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t *exec, cudaGraph_t graph,
						  unsigned long long flags)
{
	return cudaGraphInstantiate(exec, graph, flags);
}

SIM_API cudaError_t cudaGraphInstantiateWithParams(cudaGraphExec_t *exec, cudaGraph_t graph,
						   cudaGraphInstantiateParams *params)
{
	params->result_out = cudaGraphInstantiateSuccess;
	params->errNode_out = NULL;
	return cudaGraphInstantiate(exec, graph, 0);
}

SIM_API cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec)
{
	return RT(graph_exec_destroy(exec));
}

SIM_API cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream)
{
	RT_ENTER();
	if (stream_valid(stream))
		return RT(SIM_BAD_HANDLE);
	if (stream_captures(stream, NODE_GRAPH, 0, NULL, NULL))
		return RT(SIM_OK);
	return RT(graph_launch(exec));
}

SIM_API cudaError_t cudaGraphExecUpdate(cudaGraphExec_t exec, cudaGraph_t graph,
					cudaGraphExecUpdateResultInfo *info)
{
	(void)exec;
	if (info)
		memset(info, 0, sizeof(*info));
	return RT(graph_check(graph) ? SIM_OK : SIM_INVALID);
}

SIM_API cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *n)
{
	return RT(graph_nodes(GRAPH(graph), (void **)nodes, n));
}

SIM_API cudaError_t cudaGraphGetRootNodes(cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *n)
{
	return cudaGraphGetNodes(graph, nodes, n);
}

SIM_API cudaError_t cudaGraphNodeGetType(cudaGraphNode_t node, enum cudaGraphNodeType *type)
{
	return RT(graph_node_type(node, (int *)type));
}

/* Edges are not kept. CUDA 12 has no edge data before the count. */
SIM_API cudaError_t cudaGraphNodeGetDependencies(cudaGraphNode_t node, cudaGraphNode_t *deps,
						 cudaGraphEdgeData *edges, size_t *n)
{
	(void)node, (void)deps;
	if (sim_cuda_major() < 13)
		n = (size_t *)edges;
	if (n)
		*n = 0;
	return RT(SIM_OK);
}

SIM_API cudaError_t cudaGraphNodeGetDependentNodes(cudaGraphNode_t node, cudaGraphNode_t *deps,
						   cudaGraphEdgeData *edges, size_t *n)
{
	return cudaGraphNodeGetDependencies(node, deps, edges, n);
}

SIM_API cudaError_t cudaGraphGetEdges(cudaGraph_t graph, cudaGraphNode_t *from, cudaGraphNode_t *to,
				      cudaGraphEdgeData *edges, size_t *n)
{
	(void)graph, (void)from, (void)to;
	if (sim_cuda_major() < 13)
		n = (size_t *)edges;
	if (n)
		*n = 0;
	return RT(SIM_OK);
}

/* Every AddNode function ends in a node that does nothing. */
SIM_API cudaError_t cudaGraphAddEmptyNode(cudaGraphNode_t *node, cudaGraph_t graph,
					  const cudaGraphNode_t *deps, size_t n)
{
	(void)deps, (void)n;
	return RT(graph_add(GRAPH(graph), NODE_EMPTY, 0, NULL, NULL, (void **)node));
}

SIM_API cudaError_t cudaGraphAddKernelNode(cudaGraphNode_t *node, cudaGraph_t graph,
					   const cudaGraphNode_t *deps, size_t n,
					   const struct cudaKernelNodeParams *params)
{
	(void)deps, (void)n, (void)params;
	return RT(graph_add(GRAPH(graph), NODE_KERNEL, 0, NULL, NULL, (void **)node));
}

SIM_API cudaError_t cudaGraphAddHostNode(cudaGraphNode_t *node, cudaGraph_t graph,
					 const cudaGraphNode_t *deps, size_t n,
					 const struct cudaHostNodeParams *params)
{
	(void)deps, (void)n;
	return RT(graph_add(GRAPH(graph), NODE_HOST, 0, (void *)params->fn, params->userData,
			    (void **)node));
}

SIM_API cudaError_t cudaGraphDebugDotPrint(cudaGraph_t graph, const char *path, unsigned int flags)
{
	(void)path, (void)flags;
	return RT(graph_check(graph) ? SIM_OK : SIM_INVALID);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * The runtime's graphs.
 */
#include <string.h>
#include "../core/clock.h"
#include "driver.h"

#define GRAPH(g) ((struct sim_graph *)(g))

RT_PLAIN(cudaGraphCreate, graph ? graph_create((struct sim_graph **)graph) : SIM_INVALID,
	 cudaGraph_t *graph, UNUSED unsigned int flags)
RT_PLAIN(cudaGraphDestroy, graph_destroy(GRAPH(graph)), cudaGraph_t graph)
RT_PLAIN(cudaGraphInstantiate, graph_instantiate((void **)exec, GRAPH(graph), flags),
	 cudaGraphExec_t *exec, cudaGraph_t graph, unsigned long long flags)

SIM_API cudaError_t cudaGraphInstantiateWithParams(cudaGraphExec_t *exec, cudaGraph_t graph,
						   cudaGraphInstantiateParams *params)
{
	params->result_out = cudaGraphInstantiateSuccess;
	params->errNode_out = NULL;
	return cudaGraphInstantiate(exec, graph, params->flags);
}

RT_PLAIN(cudaGraphExecDestroy, graph_exec_destroy(exec), cudaGraphExec_t exec)

RT_CALL(cudaGraphLaunch, driver()->cuGraphLaunch((CUgraphExec)exec, stream), cudaGraphExec_t exec,
	cudaStream_t stream)

SIM_API cudaError_t cudaGraphExecUpdate(cudaGraphExec_t exec, cudaGraph_t graph,
					cudaGraphExecUpdateResultInfo *info)
{
	(void)exec;
	if (info)
		memset(info, 0, sizeof(*info));
	return RT(graph_check(graph) ? SIM_OK : SIM_INVALID);
}

RT_PLAIN(cudaGraphGetNodes, graph_nodes(GRAPH(graph), (void **)nodes, n), cudaGraph_t graph,
	 cudaGraphNode_t *nodes, size_t *n)
RT_PLAIN(cudaGraphGetRootNodes, graph_roots(GRAPH(graph), (void **)nodes, n), cudaGraph_t graph,
	 cudaGraphNode_t *nodes, size_t *n)
RT_PLAIN(cudaGraphNodeGetType, graph_node_type(node, (int *)type), cudaGraphNode_t node,
	 enum cudaGraphNodeType *type)

/* ---- edges: the first forms of CUDA 12 have no edge data before the count ---- */

static size_t *plain_edges(cudaGraphEdgeData *edges, size_t *n)
{
	if (sim_cuda_major() < 13)
		return (size_t *)edges;
	if (edges && n)
		memset(edges, 0, *n * sizeof(*edges));
	return n;
}

cudaError_t cudaGraphNodeGetDependencies_v2(cudaGraphNode_t, cudaGraphNode_t *, cudaGraphEdgeData *,
					    size_t *);
cudaError_t cudaGraphNodeGetDependentNodes_v2(cudaGraphNode_t, cudaGraphNode_t *,
					      cudaGraphEdgeData *, size_t *);
cudaError_t cudaGraphGetEdges_v2(cudaGraph_t, cudaGraphNode_t *, cudaGraphNode_t *,
				 cudaGraphEdgeData *, size_t *);
cudaError_t cudaGraphAddDependencies_v2(cudaGraph_t, const cudaGraphNode_t *,
					const cudaGraphNode_t *, const cudaGraphEdgeData *, size_t);

RT_PLAIN(cudaGraphNodeGetDependencies, graph_before(node, (void **)nodes, plain_edges(edges, n)),
	 cudaGraphNode_t node, cudaGraphNode_t *nodes, cudaGraphEdgeData *edges, size_t *n)
RT_PLAIN(cudaGraphNodeGetDependentNodes, graph_after(node, (void **)nodes, plain_edges(edges, n)),
	 cudaGraphNode_t node, cudaGraphNode_t *nodes, cudaGraphEdgeData *edges, size_t *n)
RT_PLAIN(cudaGraphGetEdges,
	 graph_edges(GRAPH(graph), (void **)from, (void **)to, plain_edges(edges, n)),
	 cudaGraph_t graph, cudaGraphNode_t *from, cudaGraphNode_t *to, cudaGraphEdgeData *edges,
	 size_t *n)

static int depend(void *graph, void *const *from, void *const *to, size_t n)
{
	int result = graph_check(graph) && (!n || (from && to)) ? SIM_OK : SIM_INVALID;

	for (size_t i = 0; !result && i < n; i++)
		result = graph_owns(graph, from[i]) ? graph_depend(from[i], to[i]) : SIM_INVALID;
	return result;
}

SIM_API cudaError_t cudaGraphAddDependencies(cudaGraph_t graph, const cudaGraphNode_t *from,
					     const cudaGraphNode_t *to,
					     const cudaGraphEdgeData *edges, size_t n)
{
	if (sim_cuda_major() < 13)
		n = (size_t)edges;
	return RT(depend(graph, (void *const *)from, (void *const *)to, n));
}

SIM_API cudaError_t cudaGraphNodeGetDependencies_v2(cudaGraphNode_t node, cudaGraphNode_t *nodes,
						    cudaGraphEdgeData *edges, size_t *n)
{
	if (edges && n)
		memset(edges, 0, *n * sizeof(*edges));
	return RT(graph_before(node, (void **)nodes, n));
}

SIM_API cudaError_t cudaGraphNodeGetDependentNodes_v2(cudaGraphNode_t node, cudaGraphNode_t *nodes,
						      cudaGraphEdgeData *edges, size_t *n)
{
	if (edges && n)
		memset(edges, 0, *n * sizeof(*edges));
	return RT(graph_after(node, (void **)nodes, n));
}

SIM_API cudaError_t cudaGraphGetEdges_v2(cudaGraph_t graph, cudaGraphNode_t *from,
					 cudaGraphNode_t *to, cudaGraphEdgeData *edges, size_t *n)
{
	if (edges && n)
		memset(edges, 0, *n * sizeof(*edges));
	return RT(graph_edges(GRAPH(graph), (void **)from, (void **)to, n));
}

RT_PLAIN(cudaGraphAddDependencies_v2, depend(graph, (void *const *)from, (void *const *)to, n),
	 cudaGraph_t graph, const cudaGraphNode_t *from, const cudaGraphNode_t *to,
	 UNUSED const cudaGraphEdgeData *edges, size_t n)

/* ---- nodes that programs add themselves ---- */

static int add(cudaGraph_t graph, const struct node_spec *spec, const cudaGraphNode_t *deps,
	       size_t n, cudaGraphNode_t *node)
{
	return graph_add(GRAPH(graph), spec, (void *const *)deps, n, (void **)node);
}

RT_PLAIN(cudaGraphAddEmptyNode,
	 add(graph, &(struct node_spec){ .type = NODE_EMPTY }, deps, n, node),
	 cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *deps, size_t n)

SIM_API cudaError_t cudaGraphAddKernelNode(cudaGraphNode_t *node, cudaGraph_t graph,
					   const cudaGraphNode_t *deps, size_t n,
					   const struct cudaKernelNodeParams *p)
{
	struct node_spec spec = { .type = NODE_KERNEL };

	if (!p)
		return RT(SIM_INVALID);
	spec.ns = time_of_kernel(p->gridDim.x * p->gridDim.y * p->gridDim.z,
				 p->blockDim.x * p->blockDim.y * p->blockDim.z);
	return RT(add(graph, &spec, deps, n, node));
}

SIM_API cudaError_t cudaGraphAddHostNode(cudaGraphNode_t *node, cudaGraph_t graph,
					 const cudaGraphNode_t *deps, size_t n,
					 const struct cudaHostNodeParams *p)
{
	if (!p)
		return RT(SIM_INVALID);
	return RT(add(graph,
		      &(struct node_spec){ .type = NODE_HOST, .fn = p->fn, .data = p->userData },
		      deps, n, node));
}

RT_PLAIN(cudaGraphDebugDotPrint, graph_draw(GRAPH(graph), path), cudaGraph_t graph,
	 const char *path, UNUSED unsigned int flags)

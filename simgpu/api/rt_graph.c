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
RT_PLAIN(cudaGraphDestroy, driver()->cuGraphDestroy(graph), cudaGraph_t graph)
RT_PLAIN(cudaGraphInstantiate, driver()->cuGraphInstantiateWithFlags(exec, graph, flags),
	 cudaGraphExec_t *exec, cudaGraph_t graph, unsigned long long flags)
RT_PLAIN(cudaGraphInstantiateWithParams,
	 driver()->cuGraphInstantiateWithParams(exec, graph,
						(CUDA_GRAPH_INSTANTIATE_PARAMS *)params),
	 cudaGraphExec_t *exec, cudaGraph_t graph, cudaGraphInstantiateParams *params)

RT_PLAIN(cudaGraphExecDestroy, driver()->cuGraphExecDestroy(exec), cudaGraphExec_t exec)

RT_CALL(cudaGraphLaunch, driver()->cuGraphLaunch((CUgraphExec)exec, stream), cudaGraphExec_t exec,
	cudaStream_t stream)

RT_PLAIN(cudaGraphExecUpdate,
	 driver()->cuGraphExecUpdate(exec, graph, (CUgraphExecUpdateResultInfo *)info),
	 cudaGraphExec_t exec, cudaGraph_t graph, cudaGraphExecUpdateResultInfo *info)

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

static int add_node(cudaGraph_t graph, const struct node_spec *spec, const cudaGraphNode_t *deps,
		    size_t n, cudaGraphNode_t *node)
{
	return graph_add(GRAPH(graph), spec, (void *const *)deps, n, (void **)node);
}

RT_PLAIN(cudaGraphAddEmptyNode,
	 add_node(graph, &(struct node_spec){ .type = NODE_EMPTY }, deps, n, node),
	 cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *deps, size_t n)

SIM_API cudaError_t cudaGraphAddHostNode(cudaGraphNode_t *node, cudaGraph_t graph,
					 const cudaGraphNode_t *deps, size_t n,
					 const struct cudaHostNodeParams *p)
{
	if (!p)
		return RT(SIM_INVALID);
	return RT(add_node(
		graph, &(struct node_spec){ .type = NODE_HOST, .fn = p->fn, .data = p->userData },
		deps, n, node));
}

RT_PLAIN(cudaGraphDebugDotPrint, graph_draw(GRAPH(graph), path), cudaGraph_t graph,
	 const char *path, UNUSED unsigned int flags)

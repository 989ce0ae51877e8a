/* SPDX-License-Identifier: Apache-2.0
 *
 * Functions of runtime and driver for graph nodes that allocate and free memory, and for queries
 * about that memory (core/graph_memory.c).
 */
#include "cudart.h"

static int add_alloc(void **node, void *graph, void *const *deps, size_t n, int device,
		     size_t bytes, uintptr_t *addr)
{
	struct node_spec spec;
	int result = graph_check(graph) ? SIM_OK : SIM_INVALID;

	if (!result && (device < 0 || device >= sim_device_count()))
		result = SIM_INVALID;
	if (!result)
		result = graph_allocates(graph, device, bytes, &spec);
	if (!result)
		result = graph_add(graph, &spec, deps, n, node);
	if (!result)
		*addr = spec.addr;
	return result;
}

static int add_free(void **node, void *graph, void *const *deps, size_t n, uintptr_t addr)
{
	struct node_spec spec;
	int result = graph_check(graph) ? graph_frees(graph, addr, &spec) : SIM_INVALID;

	return result ? result : graph_add(graph, &spec, deps, n, node);
}

/* ---- runtime ---- */

SIM_API cudaError_t cudaGraphAddMemAllocNode(cudaGraphNode_t *node, cudaGraph_t graph,
					     const cudaGraphNode_t *deps, size_t n,
					     struct cudaMemAllocNodeParams *p)
{
	RT_ENTER();
	if (!p || p->poolProps.location.type != cudaMemLocationTypeDevice)
		return RT(SIM_INVALID);
	return RT(add_alloc((void **)node, graph, (void *const *)deps, n, p->poolProps.location.id,
			    p->bytesize, (uintptr_t *)&p->dptr));
}

RT_PLAIN(cudaGraphAddMemFreeNode,
	 add_free((void **)node, graph, (void *const *)deps, n, (uintptr_t)ptr),
	 cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *deps, size_t n, void *ptr)
RT_PLAIN(cudaDeviceGraphMemTrim, graph_memory_trim(device), int device)
RT_PLAIN(cudaDeviceGetGraphMemAttribute, graph_memory_get(device, (int)attribute, value),
	 int device, enum cudaGraphMemAttributeType attribute, void *value)
RT_PLAIN(cudaDeviceSetGraphMemAttribute, graph_memory_set(device, (int)attribute, value),
	 int device, enum cudaGraphMemAttributeType attribute, void *value)

/* ---- driver ---- */

SIM_API CUresult cuGraphAddMemAllocNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *deps,
					size_t n, CUDA_MEM_ALLOC_NODE_PARAMS *p)
{
	DRV_ENTER();
	if (!p || p->poolProps.location.type != CU_MEM_LOCATION_TYPE_DEVICE)
		return DRV(SIM_INVALID);
	return DRV(add_alloc((void **)node, graph, (void *const *)deps, n, p->poolProps.location.id,
			     p->bytesize, (uintptr_t *)&p->dptr));
}

DRV_PLAIN(cuGraphAddMemFreeNode, add_free((void **)node, graph, (void *const *)deps, n, ptr),
	  CUgraphNode *node, CUgraph graph, const CUgraphNode *deps, size_t n, CUdeviceptr ptr)
DRV_PLAIN(cuDeviceGraphMemTrim, graph_memory_trim(device), CUdevice device)
DRV_PLAIN(cuDeviceGetGraphMemAttribute, graph_memory_get(device, (int)attribute, value),
	  CUdevice device, CUgraphMem_attribute attribute, void *value)
DRV_PLAIN(cuDeviceSetGraphMemAttribute, graph_memory_set(device, (int)attribute, value),
	  CUdevice device, CUgraphMem_attribute attribute, void *value)

/* SPDX-License-Identifier: Apache-2.0
 *
 * The runtime's nodes of graphs that launch, copy or fill: each function is one call of the driver.
 * The structures of kernels and fills are the driver's under other names.
 */
#include <string.h>
#include "driver.h"

_Static_assert(sizeof(struct cudaKernelNodeParams) == sizeof(CUDA_KERNEL_NODE_PARAMS_v1),
	       "kernels");
_Static_assert(sizeof(struct cudaMemsetParams) == sizeof(CUDA_MEMSET_NODE_PARAMS), "fills");

#define ADD   cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *deps, size_t n
#define WHERE node, graph, deps, n

static CUcontext here(void)
{
	return (CUcontext)ctx_primary(sim_device());
}

/* ---- kernels ---- */

static CUDA_KERNEL_NODE_PARAMS kernel(const struct cudaKernelNodeParams *p)
{
	CUDA_KERNEL_NODE_PARAMS whole = { 0 };

	if (p)
		memcpy(&whole, p, sizeof(*p));
	return whole;
}

static int get_kernel(cudaGraphNode_t node, struct cudaKernelNodeParams *p)
{
	CUDA_KERNEL_NODE_PARAMS whole;
	int result = p ? (int)driver()->cuGraphKernelNodeGetParams(node, &whole) : SIM_INVALID;

	if (!result)
		memcpy(p, &whole, sizeof(*p));
	return result;
}

#define KERNEL (&(CUDA_KERNEL_NODE_PARAMS[]){ kernel(p) }[0])

RT_CALL(cudaGraphAddKernelNode, driver()->cuGraphAddKernelNode(WHERE, KERNEL), ADD,
	const struct cudaKernelNodeParams *p)
RT_CALL(cudaGraphKernelNodeSetParams, driver()->cuGraphKernelNodeSetParams(node, KERNEL),
	cudaGraphNode_t node, const struct cudaKernelNodeParams *p)
RT_CALL(cudaGraphExecKernelNodeSetParams,
	driver()->cuGraphExecKernelNodeSetParams(exec, node, KERNEL), cudaGraphExec_t exec,
	cudaGraphNode_t node, const struct cudaKernelNodeParams *p)
RT_CALL(cudaGraphKernelNodeGetParams, get_kernel(node, p), cudaGraphNode_t node,
	struct cudaKernelNodeParams *p)

/* ---- copies ---- */

static struct cudaMemcpy3DParms flat(void *dst, const void *src, size_t bytes)
{
	return (struct cudaMemcpy3DParms){ .srcPtr = { (void *)src, bytes, bytes, 1 },
					   .dstPtr = { dst, bytes, bytes, 1 },
					   .extent = { bytes, 1, 1 },
					   .kind = cudaMemcpyDefault };
}

static void *end_of(CUmemorytype type, const void *host, CUdeviceptr device)
{
	return type == CU_MEMORYTYPE_HOST ? (void *)host : (void *)device;
}

static int get_copy(cudaGraphNode_t node, struct cudaMemcpy3DParms *p)
{
	CUDA_MEMCPY3D c;
	int result = p ? (int)driver()->cuGraphMemcpyNodeGetParams(node, &c) : SIM_INVALID;

	if (result)
		return result;
	*p = (struct cudaMemcpy3DParms){
		.srcPtr = { end_of(c.srcMemoryType, c.srcHost, c.srcDevice), c.srcPitch,
			    c.WidthInBytes, c.srcHeight },
		.dstPtr = { end_of(c.dstMemoryType, c.dstHost, c.dstDevice), c.dstPitch,
			    c.WidthInBytes, c.dstHeight },
		.extent = { c.WidthInBytes, c.Height, c.Depth },
		.kind = cudaMemcpyDefault
	};
	return SIM_OK;
}

#define COPY(p) (&(CUDA_MEMCPY3D[]){ driver_copy(p) }[0])
#define FLAT	(&(struct cudaMemcpy3DParms[]){ flat(dst, src, bytes) }[0])

static int add_copy(ADD, const struct cudaMemcpy3DParms *p)
{
	return p ? (int)driver()->cuGraphAddMemcpyNode(WHERE, COPY(p), here()) : SIM_INVALID;
}

static int set_copy(cudaGraphNode_t node, const struct cudaMemcpy3DParms *p)
{
	return p ? (int)driver()->cuGraphMemcpyNodeSetParams(node, COPY(p)) : SIM_INVALID;
}

static int exec_copy(cudaGraphExec_t exec, cudaGraphNode_t node, const struct cudaMemcpy3DParms *p)
{
	return p ? (int)driver()->cuGraphExecMemcpyNodeSetParams(exec, node, COPY(p), here())
		 : SIM_INVALID;
}

RT_CALL(cudaGraphAddMemcpyNode, add_copy(WHERE, p), ADD, const struct cudaMemcpy3DParms *p)
RT_CALL(cudaGraphAddMemcpyNode1D, add_copy(WHERE, FLAT), ADD, void *dst, const void *src,
	size_t bytes, UNUSED enum cudaMemcpyKind kind)
RT_CALL(cudaGraphMemcpyNodeSetParams, set_copy(node, p), cudaGraphNode_t node,
	const struct cudaMemcpy3DParms *p)
RT_CALL(cudaGraphMemcpyNodeSetParams1D, set_copy(node, FLAT), cudaGraphNode_t node, void *dst,
	const void *src, size_t bytes, UNUSED enum cudaMemcpyKind kind)
RT_CALL(cudaGraphExecMemcpyNodeSetParams, exec_copy(exec, node, p), cudaGraphExec_t exec,
	cudaGraphNode_t node, const struct cudaMemcpy3DParms *p)
RT_CALL(cudaGraphExecMemcpyNodeSetParams1D, exec_copy(exec, node, FLAT), cudaGraphExec_t exec,
	cudaGraphNode_t node, void *dst, const void *src, size_t bytes,
	UNUSED enum cudaMemcpyKind kind)
RT_CALL(cudaGraphMemcpyNodeGetParams, get_copy(node, p), cudaGraphNode_t node,
	struct cudaMemcpy3DParms *p)

/* ---- fills ---- */

#define FILL ((CUDA_MEMSET_NODE_PARAMS *)p)

RT_CALL(cudaGraphAddMemsetNode, driver()->cuGraphAddMemsetNode(WHERE, FILL, here()), ADD,
	const struct cudaMemsetParams *p)
RT_CALL(cudaGraphMemsetNodeSetParams, driver()->cuGraphMemsetNodeSetParams(node, FILL),
	cudaGraphNode_t node, const struct cudaMemsetParams *p)
RT_CALL(cudaGraphExecMemsetNodeSetParams,
	driver()->cuGraphExecMemsetNodeSetParams(exec, node, FILL, here()), cudaGraphExec_t exec,
	cudaGraphNode_t node, const struct cudaMemsetParams *p)
RT_CALL(cudaGraphMemsetNodeGetParams, driver()->cuGraphMemsetNodeGetParams(node, FILL),
	cudaGraphNode_t node, struct cudaMemsetParams *p)

/* SPDX-License-Identifier: Apache-2.0
 *
 * The driver's functions for the runtime, each looked up once (../core/driver.c). A call of the
 * runtime leads to one call of the driver.
 */
#pragma once

#include "cudart.h"

/* The base name, the exported symbol, and the CUDA version whose ABI that is. */
#define DRIVER_CALLS(ROW)                                                             \
	ROW(cuLaunchKernel, cuLaunchKernel, 4000)                                     \
	ROW(cuLaunchKernelEx, cuLaunchKernelEx, 11060)                                \
	ROW(cuLaunchCooperativeKernel, cuLaunchCooperativeKernel, 9000)               \
	ROW(cuGraphLaunch, cuGraphLaunch, 10000)                                      \
	ROW(cuGraphInstantiateWithFlags, cuGraphInstantiateWithFlags, 11040)          \
	ROW(cuGraphInstantiateWithParams, cuGraphInstantiateWithParams, 12000)        \
	ROW(cuGraphExecDestroy, cuGraphExecDestroy, 10000)                            \
	ROW(cuGraphDestroy, cuGraphDestroy, 10000)                                    \
	ROW(cuGraphExecUpdate, cuGraphExecUpdate_v2, 12000)                           \
	ROW(cuGraphAddKernelNode, cuGraphAddKernelNode_v2, 12000)                     \
	ROW(cuGraphKernelNodeSetParams, cuGraphKernelNodeSetParams_v2, 12000)         \
	ROW(cuGraphExecKernelNodeSetParams, cuGraphExecKernelNodeSetParams_v2, 12000) \
	ROW(cuGraphKernelNodeGetParams, cuGraphKernelNodeGetParams_v2, 12000)         \
	ROW(cuGraphAddMemcpyNode, cuGraphAddMemcpyNode, 10000)                        \
	ROW(cuGraphMemcpyNodeSetParams, cuGraphMemcpyNodeSetParams, 10000)            \
	ROW(cuGraphExecMemcpyNodeSetParams, cuGraphExecMemcpyNodeSetParams, 10020)    \
	ROW(cuGraphMemcpyNodeGetParams, cuGraphMemcpyNodeGetParams, 10000)            \
	ROW(cuGraphAddMemsetNode, cuGraphAddMemsetNode, 10000)                        \
	ROW(cuGraphMemsetNodeSetParams, cuGraphMemsetNodeSetParams, 10000)            \
	ROW(cuGraphExecMemsetNodeSetParams, cuGraphExecMemsetNodeSetParams, 10020)    \
	ROW(cuGraphMemsetNodeGetParams, cuGraphMemsetNodeGetParams, 10000)            \
	ROW(cuStreamBeginCapture, cuStreamBeginCapture_v2, 10010)                     \
	ROW(cuStreamEndCapture, cuStreamEndCapture, 10000)                            \
	ROW(cuMemcpy, cuMemcpy, 4000)                                                 \
	ROW(cuMemcpyAsync, cuMemcpyAsync, 4000)                                       \
	ROW(cuMemcpyHtoD, cuMemcpyHtoD_v2, 3020)                                      \
	ROW(cuMemcpyHtoDAsync, cuMemcpyHtoDAsync_v2, 3020)                            \
	ROW(cuMemcpyDtoH, cuMemcpyDtoH_v2, 3020)                                      \
	ROW(cuMemcpyDtoHAsync, cuMemcpyDtoHAsync_v2, 3020)                            \
	ROW(cuMemcpyDtoD, cuMemcpyDtoD_v2, 3020)                                      \
	ROW(cuMemcpyDtoDAsync, cuMemcpyDtoDAsync_v2, 3020)                            \
	ROW(cuMemcpyPeer, cuMemcpyPeer, 4000)                                         \
	ROW(cuMemcpyPeerAsync, cuMemcpyPeerAsync, 4000)                               \
	ROW(cuMemcpy2DUnaligned, cuMemcpy2DUnaligned_v2, 3020)                        \
	ROW(cuMemcpy2DAsync, cuMemcpy2DAsync_v2, 3020)                                \
	ROW(cuMemcpy3D, cuMemcpy3D_v2, 3020)                                          \
	ROW(cuMemcpy3DAsync, cuMemcpy3DAsync_v2, 3020)                                \
	ROW(cuMemcpy3DPeer, cuMemcpy3DPeer, 4000)                                     \
	ROW(cuMemcpy3DPeerAsync, cuMemcpy3DPeerAsync, 4000)                           \
	ROW(cuMemcpyBatchAsync, cuMemcpyBatchAsync_v2, 13000)                         \
	ROW(cuMemcpy3DBatchAsync, cuMemcpy3DBatchAsync_v2, 13000)                     \
	ROW(cuMemPrefetchAsync, cuMemPrefetchAsync_v2, 12020)                         \
	ROW(cuMemPrefetchBatchAsync, cuMemPrefetchBatchAsync, 13000)                  \
	ROW(cuMemsetD8, cuMemsetD8_v2, 3020)                                          \
	ROW(cuMemsetD8Async, cuMemsetD8Async, 3020)                                   \
	ROW(cuMemsetD2D8, cuMemsetD2D8_v2, 3020)                                      \
	ROW(cuMemsetD2D8Async, cuMemsetD2D8Async, 3020)

struct driver_calls {
#define ROW(name, symbol, version) typeof(symbol) *name;
	DRIVER_CALLS(ROW)
#undef ROW
};

const struct driver_calls *driver(void);
/* A copy of the runtime as the driver has it; rt_copy.c. */
CUDA_MEMCPY3D driver_copy(const struct cudaMemcpy3DParms *p);

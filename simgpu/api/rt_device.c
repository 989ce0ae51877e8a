/* SPDX-License-Identifier: Apache-2.0
 *
 * The runtime's functions for devices: count, choice, versions, limits, peers.
 */
#include <string.h>
#include "cudart.h"

SIM_API cudaError_t cudaGetDeviceCount(int *count)
{
	int result = sim_init();

	if (!count)
		return RT(SIM_INVALID);
	*count = result ? 0 : sim_device_count();
	return RT(result);
}

SIM_API cudaError_t cudaGetDevice(int *device)
{
	int result = sim_init();

	if (result)
		return RT(result);
	if (!device)
		return RT(SIM_INVALID);
	*device = sim_device();
	return RT(SIM_OK);
}

RT_PLAIN(cudaSetDevice, sim_set_device(device), int device)

SIM_API cudaError_t cudaInitDevice(int device, unsigned int deviceFlags, unsigned int flags)
{
	int result = sim_init();

	(void)deviceFlags;
	(void)flags;
	if (!result && (device < 0 || device >= sim_device_count()))
		result = SIM_BAD_DEVICE;
	return RT(result ? result : sim_enter_primary(device));
}

SIM_API cudaError_t cudaSetDeviceFlags(unsigned int flags)
{
	int result = sim_init();

	if (!result)
		ctx_primary(sim_device())->flags = flags;
	return RT(result);
}

SIM_API cudaError_t cudaGetDeviceFlags(unsigned int *flags)
{
	int result = sim_init();

	if (!result)
		*flags = ctx_primary(sim_device())->flags | cudaDeviceMapHost;
	return RT(result);
}

SIM_API cudaError_t cudaDeviceReset(void)
{
	int result = sim_init();

	if (!result)
		memory_reset(sim_device());
	return RT(result);
}

RT_CALL(cudaDeviceSynchronize, device_sync(sim_device()), void)

SIM_API cudaError_t cudaDriverGetVersion(int *version)
{
	if (!version)
		return RT(SIM_INVALID);
	*version = sim_cuda_version();
	return RT(SIM_OK);
}

SIM_API cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest)
{
	RT_ENTER();
	if (least)
		*least = 0;
	if (greatest)
		*greatest = -5;
	return RT(SIM_OK);
}

SIM_API cudaError_t cudaDeviceGetPCIBusId(char *id, int len, int device)
{
	int result = sim_init();

	if (!result && (device < 0 || device >= sim_device_count()))
		result = SIM_BAD_DEVICE;
	if (!result && (!id || len < 13))
		result = SIM_INVALID;
	if (!result)
		device_bus_id(id, len, device_physical(device));
	return RT(result);
}

SIM_API cudaError_t cudaDeviceGetByPCIBusId(int *device, const char *id)
{
	int result = sim_init();
	char s[32];

	if (result || !device || !id)
		return RT(result ? result : SIM_INVALID);
	for (int i = 0; i < sim_device_count(); i++) {
		device_bus_id(s, sizeof(s), device_physical(i));
		if (strcasestr(s, id)) {
			*device = i;
			return RT(SIM_OK);
		}
	}
	return RT(SIM_INVALID);
}

/* ---- limits: kept, without effect ---- */

#define LIMITS 8
static size_t limits[LIMITS] = { 1024, 1 << 20, 8 << 20, 0, 2048, 128, 0, 0 };

static int limit_get(size_t *value, unsigned int limit)
{
	if (!value || limit >= LIMITS)
		return !value ? SIM_INVALID : cudaErrorUnsupportedLimit;
	*value = limits[limit];
	return SIM_OK;
}

static int limit_set(unsigned int limit, size_t value)
{
	if (limit >= LIMITS)
		return cudaErrorUnsupportedLimit;
	limits[limit] = value;
	return SIM_OK;
}

RT_CALL(cudaDeviceGetLimit, limit_get(value, limit), size_t *value, enum cudaLimit limit)
RT_CALL(cudaDeviceSetLimit, limit_set(limit, value), enum cudaLimit limit, size_t value)
DRV_CALL(cuCtxGetLimit, limit_get(value, limit), size_t *value, CUlimit limit)
DRV_CALL(cuCtxSetLimit, limit_set(limit, value), CUlimit limit, size_t value)

/* ---- peers: all pairs of devices, except on GeForce cards ---- */

static uint32_t peers[SIM_MAX_DEVICES]; /* bit per device that may be accessed */

static int can_access(int *can, int device, int peer)
{
	int n = sim_device_count();

	if (device < 0 || device >= n || peer < 0 || peer >= n)
		return SIM_BAD_DEVICE;
	*can = device != peer && card_has_peers();
	return SIM_OK;
}

static int change_peer(int peer, bool enable)
{
	int device = sim_device(), can, result = can_access(&can, device, peer);

	if (result)
		return result;
	if (enable && !can)
		return cudaErrorPeerAccessUnsupported;
	if (enable == (bool)(peers[device] >> peer & 1))
		return enable ? ERR_PEER_ALREADY : ERR_PEER_NOT_ENABLED;
	peers[device] ^= 1u << peer;
	return SIM_OK;
}

SIM_API cudaError_t cudaDeviceCanAccessPeer(int *can, int device, int peer)
{
	int result = sim_init();

	return RT(result ? result : can_access(can, device, peer));
}

RT_CALL(cudaDeviceEnablePeerAccess, flags ? SIM_INVALID : change_peer(peer, true), int peer,
	unsigned int flags)
RT_CALL(cudaDeviceDisablePeerAccess, change_peer(peer, false), int peer)

static int p2p_attribute(int *value, int attribute, int a, int b)
{
	int can, result = can_access(&can, a, b);

	if (!result)
		*value = attribute == cudaDevP2PAttrPerformanceRank ? 0 : can;
	return result;
}

SIM_API cudaError_t cudaDeviceGetP2PAttribute(int *value, enum cudaDeviceP2PAttr attribute, int a,
					      int b)
{
	int result = sim_init();

	return RT(result ? result : p2p_attribute(value, attribute, a, b));
}

DRV_PLAIN(cuDeviceGetP2PAttribute, p2p_attribute(value, attribute, a, b), int *value,
	  CUdevice_P2PAttribute attribute, CUdevice a, CUdevice b)
DRV_PLAIN(cuDeviceCanAccessPeer, can_access(can, device, peer), int *can, CUdevice device,
	  CUdevice peer)

SIM_API CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned int flags)
{
	struct sim_ctx *ctx = ctx_check(peer);

	DRV_ENTER();
	if (!ctx)
		return CUDA_ERROR_INVALID_CONTEXT;
	return DRV(flags ? SIM_INVALID : change_peer(ctx->device, true));
}

SIM_API CUresult cuCtxDisablePeerAccess(CUcontext peer)
{
	struct sim_ctx *ctx = ctx_check(peer);

	DRV_ENTER();
	return ctx ? DRV(change_peer(ctx->device, false)) : CUDA_ERROR_INVALID_CONTEXT;
}

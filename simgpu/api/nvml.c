/* SPDX-License-Identifier: Apache-2.0
 *
 * NVML, which monitoring tools and out-of-memory messages query. It sees all devices, also those
 * that CUDA_VISIBLE_DEVICES hides, and processes that share them (core/processes.c). Needs no CUDA
 * initialisation and makes no context.
 */
#define NVML_NO_UNVERSIONED_FUNC_DEFS
#include <nvml.h>
#include <stdio.h>
#include <string.h>
#include "../core/devices.h"
#include "../core/memory.h"
#include "../core/processes.h"
#include "../core/usage.h"

static unsigned int users;	      /* nvmlInit calls without nvmlShutdown */
static char devices[SIM_MAX_DEVICES]; /* their addresses are the handles */

static int ordinal(nvmlDevice_t device)
{
	uintptr_t i = (uintptr_t)device - (uintptr_t)devices;

	return i < (uintptr_t)device_physical_count() ? (int)i : -1;
}

/* Every query about a device begins with this. */
#define DEVICE(i, device)                        \
	UNUSED int i = ordinal(device);          \
	if (!users)                              \
		return NVML_ERROR_UNINITIALIZED; \
	if (i < 0)                               \
	return NVML_ERROR_INVALID_ARGUMENT

/* A query that always has an answer, as one row. */
#define ANSWER(name, write, ...)                                    \
	SIM_API nvmlReturn_t name(nvmlDevice_t device, __VA_ARGS__) \
	{                                                           \
		DEVICE(i, device);                                  \
		write;                                              \
		return NVML_SUCCESS;                                \
	}

SIM_API nvmlReturn_t nvmlInit_v2(void)
{
	if (!device_physical_count())
		return NVML_ERROR_DRIVER_NOT_LOADED;
	usage_open();
	__atomic_add_fetch(&users, 1, __ATOMIC_RELAXED);
	return NVML_SUCCESS;
}

SIM_API nvmlReturn_t nvmlShutdown(void)
{
	if (!users)
		return NVML_ERROR_UNINITIALIZED;
	__atomic_sub_fetch(&users, 1, __ATOMIC_RELAXED);
	return NVML_SUCCESS;
}

SIM_API const char *nvmlErrorString(nvmlReturn_t result)
{
	static const char *const texts[] = { "Success",
					     "Uninitialized",
					     "Invalid Argument",
					     "Not Supported",
					     "Insufficient Permissions",
					     "Already Initialized",
					     "Not Found",
					     "Insufficient Size" };

	return (unsigned int)result < sizeof(texts) / sizeof(texts[0]) ? texts[result]
								       : "Unknown Error";
}

/* ---- system ---- */

SIM_API nvmlReturn_t nvmlSystemGetCudaDriverVersion(int *version)
{
	*version = sim_cuda_version();
	return NVML_SUCCESS;
}

SIM_API nvmlReturn_t nvmlSystemGetDriverVersion(char *version, unsigned int len)
{
	snprintf(version, len, "%s", sim_cuda_major() >= 13 ? "580.00.00" : "550.00.00");
	return NVML_SUCCESS;
}

SIM_API nvmlReturn_t nvmlSystemGetNVMLVersion(char *version, unsigned int len)
{
	snprintf(version, len, "%d.%s", sim_cuda_major(),
		 sim_cuda_major() >= 13 ? "580.00.00" : "550.00.00");
	return NVML_SUCCESS;
}

/* ---- finding devices ---- */

SIM_API nvmlReturn_t nvmlDeviceGetCount_v2(unsigned int *count)
{
	if (!users)
		return NVML_ERROR_UNINITIALIZED;
	*count = device_physical_count();
	return NVML_SUCCESS;
}

SIM_API nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvmlDevice_t *device)
{
	if (!users)
		return NVML_ERROR_UNINITIALIZED;
	if (index >= (unsigned int)device_physical_count())
		return NVML_ERROR_INVALID_ARGUMENT;
	*device = (nvmlDevice_t)&devices[index];
	return NVML_SUCCESS;
}

/* Both "0000:10:00.0" and NVML's own "00000000:10:00.0". */
SIM_API nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2(const char *id, nvmlDevice_t *device)
{
	char s[32];

	for (int i = 0; id && i < device_physical_count(); i++) {
		device_bus_id(s, sizeof(s), i);
		if (strlen(id) >= strlen(s) && !strcasecmp(id + strlen(id) - strlen(s), s))
			return nvmlDeviceGetHandleByIndex_v2(i, device);
	}
	return NVML_ERROR_NOT_FOUND;
}

SIM_API nvmlReturn_t nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *device)
{
	char s[64];

	for (int i = 0; uuid && i < device_physical_count(); i++) {
		device_uuid_text(s, sizeof(s), i);
		if (!strcmp(uuid, s))
			return nvmlDeviceGetHandleByIndex_v2(i, device);
	}
	return NVML_ERROR_NOT_FOUND;
}

/* ---- one device ---- */

ANSWER(nvmlDeviceGetIndex, *index = i, unsigned int *index)
ANSWER(nvmlDeviceGetName, snprintf(name, len, "%s", sim_card()->model), char *name,
       unsigned int len)
ANSWER(nvmlDeviceGetUUID, device_uuid_text(uuid, len, i), char *uuid, unsigned int len)

SIM_API nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, nvmlPciInfo_t *pci)
{
	DEVICE(i, device);
	memset(pci, 0, sizeof(*pci));
	pci->bus = 0x10 + i;
	device_bus_id(pci->busIdLegacy, sizeof(pci->busIdLegacy), i);
	snprintf(pci->busId, sizeof(pci->busId), "0000%.20s", pci->busIdLegacy);
	return NVML_SUCCESS;
}

SIM_API nvmlReturn_t nvmlDeviceGetCudaComputeCapability(nvmlDevice_t device, int *major, int *minor)
{
	DEVICE(i, device);
	*major = sim_card()->major;
	*minor = sim_card()->minor;
	return NVML_SUCCESS;
}

SIM_API nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory)
{
	DEVICE(i, device);
	usage_asked();
	memory->total = sim_card()->memory;
	memory->used = memory_in_use(i);
	memory->free = memory->used < memory->total ? memory->total - memory->used : 0;
	return NVML_SUCCESS;
}

SIM_API nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t *memory)
{
	DEVICE(i, device);
	usage_asked();
	memory->total = sim_card()->memory;
	memory->reserved = 0;
	memory->used = memory_in_use(i);
	memory->free = memory->used < memory->total ? memory->total - memory->used : 0;
	return NVML_SUCCESS;
}

ANSWER(nvmlDeviceGetUtilizationRates, *rates = (nvmlUtilization_t){ 0 }, nvmlUtilization_t *rates)
ANSWER(nvmlDeviceGetTemperature, *celsius = 30, UNUSED nvmlTemperatureSensors_t sensor,
       unsigned int *celsius)
ANSWER(nvmlDeviceGetPowerUsage, *milliwatts = 70000, unsigned int *milliwatts)
ANSWER(nvmlDeviceGetClockInfo,
       *mhz = (type == NVML_CLOCK_MEM ? sim_card()->memory_clock_khz : sim_card()->clock_khz) /
	      1000,
       nvmlClockType_t type, unsigned int *mhz)

/* ---- links between devices ---- */

/* Devices are of one machine: no fabric joins them to others. */
SIM_API nvmlReturn_t nvmlDeviceGetGpuFabricInfoV(nvmlDevice_t device, nvmlGpuFabricInfoV_t *info)
{
	unsigned int version = info ? info->version : 0;
	size_t bytes = version & 0xffffff; /* a version has the size in its low bytes */

	DEVICE(i, device);
	if (!info)
		return NVML_ERROR_INVALID_ARGUMENT;
	if (bytes < sizeof(nvmlGpuFabricInfo_v2_t) || bytes > sizeof(*info))
		return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
	memset(info, 0, bytes);
	info->version = version;
	info->state = NVML_GPU_FABRIC_STATE_NOT_SUPPORTED;
	return NVML_SUCCESS;
}

SIM_API nvmlReturn_t nvmlDeviceGetGpuFabricInfo(nvmlDevice_t device, nvmlGpuFabricInfo_t *info)
{
	DEVICE(i, device);
	if (!info)
		return NVML_ERROR_INVALID_ARGUMENT;
	*info = (nvmlGpuFabricInfo_t){ .state = NVML_GPU_FABRIC_STATE_NOT_SUPPORTED };
	return NVML_SUCCESS;
}

/* Agrees with cudaDeviceCanAccessPeer. NVLink: only if the card has it. */
SIM_API nvmlReturn_t nvmlDeviceGetP2PStatus(nvmlDevice_t device, nvmlDevice_t peer,
					    nvmlGpuP2PCapsIndex_t what, nvmlGpuP2PStatus_t *status)
{
	DEVICE(i, device);
	if (ordinal(peer) < 0 || !status || what > NVML_P2P_CAPS_INDEX_UNKNOWN)
		return NVML_ERROR_INVALID_ARGUMENT;
	*status = i == ordinal(peer) ? NVML_P2P_STATUS_GPU_NOT_SUPPORTED : NVML_P2P_STATUS_OK;
	if (what == NVML_P2P_CAPS_INDEX_NVLINK && !card_has_nvlink())
		*status = NVML_P2P_STATUS_NOT_SUPPORTED;
	else if (i != ordinal(peer) && !card_has_peers())
		*status = NVML_P2P_STATUS_CHIPSET_NOT_SUPPORTED;
	return NVML_SUCCESS;
}

/* ---- processes that hold memory ---- */

static nvmlReturn_t processes(nvmlDevice_t device, unsigned int *room, void *infos, size_t size)
{
	struct process_part parts[PROCESSES];
	unsigned int had = infos ? *room : 0;

	DEVICE(i, device);
	*room = processes_list(i, parts, PROCESSES);
	if (*room > had)
		return NVML_ERROR_INSUFFICIENT_SIZE;
	for (unsigned int k = 0; k < *room; k++) {
		nvmlProcessInfo_t info = { .pid = parts[k].pid,
					   .usedGpuMemory = parts[k].bytes,
					   .gpuInstanceId = ~0u,
					   .computeInstanceId = ~0u };

		memcpy((char *)infos + k * size, &info, size);
	}
	return NVML_SUCCESS;
}

SIM_API nvmlReturn_t nvmlDeviceGetComputeRunningProcesses(nvmlDevice_t device, unsigned int *n,
							  nvmlProcessInfo_v1_t *infos)
{
	return processes(device, n, infos, sizeof(*infos));
}

SIM_API nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v2(nvmlDevice_t device, unsigned int *n,
							     nvmlProcessInfo_v2_t *infos)
{
	return processes(device, n, infos, sizeof(*infos));
}

SIM_API nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t device, unsigned int *n,
							     nvmlProcessInfo_t *infos)
{
	return processes(device, n, infos, sizeof(*infos));
}

/* No process uses a device for graphics or through MPS, so infos of any version are never written.
 */
ANSWER(nvmlDeviceGetGraphicsRunningProcesses_v3, *n = 0, unsigned int *n,
       UNUSED nvmlProcessInfo_t *infos)

/* SPDX-License-Identifier: Apache-2.0
 *
 * Number and names of the devices, and which of them are visible to the program: SIMGPU_COUNT and
 * CUDA_VISIBLE_DEVICES, read at the program's first query.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "devices.h"

void device_bus_id(char *s, size_t n, int physical)
{
	snprintf(s, n, "0000:%02X:00.0", 0x10 + physical);
}

/* Different for each device, the same in every process. It shows a program that the device is
 * simulated, because the name is a real card's. */
void device_uuid(unsigned char *uuid, int physical)
{
	memcpy(uuid, "simulated gpu", 13);
	uuid[6] = 0x40;
	uuid[8] = 0x80;
	uuid[13] = uuid[14] = 0;
	uuid[15] = (unsigned char)physical;
}

void device_uuid_text(char *s, size_t n, int physical)
{
	unsigned char u[16];

	device_uuid(u, physical);
	snprintf(s, n, "GPU-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x",
		 u[0], u[1], u[2], u[3], u[4], u[5], u[6], u[7], u[8], u[9], u[10], u[11], u[12],
		 u[13], u[14], u[15]);
}

int device_by_name(const char *s, int physical)
{
	size_t n = strcspn(s, ",");
	char text[64], *end;
	long number;

	for (int i = 0; i < physical && n >= 8; i++) {
		device_uuid_text(text, sizeof(text), i);
		if (!strncasecmp(text, s, n)) /* a prefix is enough */
			return i;
	}
	number = strtol(s, &end, 10);
	return end != s && end == s + n && number >= 0 && number < physical ? (int)number : -1;
}

int device_physical_count(void)
{
	const char *s = getenv("SIMGPU_COUNT");
	int n = s && *s ? atoi(s) : 1;

	if (!card_known() || n < 0)
		return 0;
	return n < SIM_MAX_DEVICES ? n : SIM_MAX_DEVICES;
}

/* CUDA_VISIBLE_DEVICES: numbers or names "GPU-...", up to the first invalid one. */
static int parse_visible(int *map, int physical)
{
	const char *s = getenv("CUDA_VISIBLE_DEVICES");
	int n = 0;

	if (!s) {
		for (; n < physical; n++)
			map[n] = n;
		return n;
	}
	while (*s && n < SIM_MAX_DEVICES) {
		int device = device_by_name(s, physical);

		if (device < 0)
			break;
		map[n++] = device;
		s += strcspn(s, ",");
		s += *s == ',';
	}
	return n;
}

static int visible[SIM_MAX_DEVICES], visible_count;
static pthread_once_t visible_once = PTHREAD_ONCE_INIT;

static void find_visible(void)
{
	visible_count = parse_visible(visible, device_physical_count());
}

int sim_device_count(void)
{
	pthread_once(&visible_once, find_visible);
	return visible_count;
}

int device_physical(int ordinal)
{
	return ordinal >= 0 && ordinal < sim_device_count() ? visible[ordinal] : -1;
}

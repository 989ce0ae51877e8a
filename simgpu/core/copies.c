/* SPDX-License-Identifier: Apache-2.0
 *
 * Copies and fills of host and device memory. Any thread.
 */
#include <string.h>
#include "contents.h"

int sim_copy(void *dst, const void *src, size_t bytes)
{
	bool to = sim_is_device_ptr(dst), from = sim_is_device_ptr(src);

	if (!bytes)
		return SIM_OK;
	if (!dst || !src)
		return SIM_INVALID;
	if (to && from)
		contents_on_device((uintptr_t)dst, (uintptr_t)src, bytes);
	else if (to)
		contents_from_host((uintptr_t)dst, src, bytes);
	else if (from)
		return contents_to_host(dst, (uintptr_t)src, bytes);
	else
		memmove(dst, src, bytes);
	return SIM_OK;
}

int sim_fill(void *dst, int byte, size_t bytes)
{
	return sim_fill_pattern(dst, (unsigned char)byte, 1, bytes);
}

int sim_fill_pattern(void *dst, uint32_t value, unsigned int width, size_t bytes)
{
	unsigned char *at = dst;

	if (!bytes)
		return SIM_OK;
	if (!dst)
		return SIM_INVALID;
	if (width == 1)
		value *= 0x01010101u;
	else if (width == 2)
		value *= 0x00010001u;
	if (sim_is_device_ptr(dst))
		contents_fill((uintptr_t)dst, value, bytes);
	else if (value == (value & 0xff) * 0x01010101u)
		memset(dst, (int)(value & 0xff), bytes);
	else
		for (size_t i = 0; i < bytes; i++)
			at[i] = (unsigned char)(value >> 8 * (((uintptr_t)at + i) % 4));
	return SIM_OK;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * The only function of the libraries with the driver's and NVML's names (Makefile), which get all
 * others from libsimgpu.so. There the math libraries and NCCL are in one object with the driver. A
 * recorder ignores lookups of an object in itself, so they look up the driver through this
 * function, from another object, as on a card.
 */
#include <dlfcn.h>

__attribute__((visibility("default"))) void *simgpu_lookup(void *handle, const char *name);

void *simgpu_lookup(void *handle, const char *name)
{
	void *volatile found = dlsym(handle, name); /* not a jump: the caller is this object */

	return found;
}

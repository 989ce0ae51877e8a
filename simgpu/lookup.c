/* SPDX-License-Identifier: Apache-2.0
 *
 * The libraries with the driver's and NVML's names (Makefile) have this function alone: all others
 * are those of libsimgpu.so, which they need. There the math libraries and NCCL lie in one object
 * with the driver. A recorder takes what an object looks up of its own for its own business, so
 * they look up the driver through this function, from another object, as on a card.
 */
#include <dlfcn.h>

__attribute__((visibility("default"))) void *simgpu_lookup(void *handle, const char *name);

void *simgpu_lookup(void *handle, const char *name)
{
	void *volatile found = dlsym(handle, name); /* not a jump: the caller is this object */

	return found;
}

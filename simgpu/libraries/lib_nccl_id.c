/* SPDX-License-Identifier: Apache-2.0
 *
 * NCCL: the id under which ranks meet names a file in memory, by process and descriptor. The file
 * has no name in any directory, so nothing is left behind, however the processes end. Ranks
 * elsewhere (on another node, in another pid namespace) see from the id that they cannot meet. Any
 * thread.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include "lib_nccl.h"

static const char mark[16] = "simgpu ranks 1";

static uint64_t mix(uint64_t h, const void *data, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		h = (h ^ ((const unsigned char *)data)[i]) * 0x100000001b3ull;
	return h;
}

/* A hash of the boot and the pid namespace: equal for processes that can open each other's
 * descriptors. */
static uint64_t place(void)
{
	uint64_t h = 0xcbf29ce484222325ull;
	struct stat st = { 0 };
	char boot[40];
	int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, boot, sizeof(boot));

	if (fd >= 0)
		close(fd);
	if (n > 0)
		h = mix(h, boot, n);
	if (!stat("/proc/self/ns/pid", &st))
		h = mix(h, &st.st_ino, sizeof(st.st_ino));
	return h;
}

int nccl_id_make(struct nccl_id *id)
{
	_Static_assert(sizeof(struct nccl_id) == 128, "as ncclUniqueId");
	*id = (struct nccl_id){ .place = place(), .pid = getpid() };
	memcpy(id->mark, mark, sizeof(mark));
	if (getrandom(id->random, sizeof(id->random), 0) != (ssize_t)sizeof(id->random))
		return NCCL_SYSTEM_ERROR;
	id->fd = memfd_create("simgpu-ranks", MFD_CLOEXEC);
	if (id->fd < 0)
		return NCCL_SYSTEM_ERROR;
	if (pwrite(id->fd, id, sizeof(*id), 0) == (ssize_t)sizeof(*id))
		return NCCL_OK;
	close(id->fd);
	return NCCL_SYSTEM_ERROR;
}

bool nccl_id_is_here(const struct nccl_id *id)
{
	return !memcmp(id->mark, mark, sizeof(mark)) && id->place == place();
}

static bool is_file_of(int fd, const struct nccl_id *id)
{
	struct nccl_id found;

	return pread(fd, &found, sizeof(found), 0) == (ssize_t)sizeof(found) &&
	       !memcmp(&found.random, id->random, sizeof(found.random));
}

/* Drops an id that this process made, once. */
void nccl_id_drop(const struct nccl_id *id)
{
	if (nccl_id_is_here(id) && id->pid == getpid() && is_file_of(id->fd, id))
		close(id->fd);
}

int nccl_id_open(const struct nccl_id *id)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", id->pid, id->fd);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return -1;
	if (is_file_of(fd, id))
		return fd;
	close(fd);
	return -1;
}

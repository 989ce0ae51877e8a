/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as a memory snapshot of PyTorch: never a crash, a hang, or memory without bound; what
 * is taken becomes a recording that reads back without damage.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../../format/reader.h"
#include "../../viewer/recording/import.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static int hear_event(void *ctx, const struct gmt_event *e)
{
	uint64_t *last = ctx;

	if (e->seq != *last + 1)
		abort();
	*last = e->seq;
	return 0;
}

static void read_back(int fd)
{
	static const struct gmt_tool tool = { .event = hear_event };
	char path[40];
	struct gmt_reader *r;
	uint64_t last = 0;
	int err;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	r = gmt_reader_open(path, &err);
	if (!r || gmt_reader_run(r, 0, UINT64_MAX, &tool, &last) || !last ||
	    gmt_reader_info(r)->truncated)
		abort();
	gmt_reader_close(r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static int fd = -1; /* kept: to make one takes as long as to read it */
	char error[300] = "";

	if (fd < 0)
		fd = memfd_create("fuzz", MFD_CLOEXEC);
	if (fd < 0 || ftruncate(fd, 0) || lseek(fd, 0, SEEK_SET))
		abort();
	if (import_bytes(data, len, fd, error, sizeof(error)))
		read_back(fd);
	else if (!error[0])
		abort();
	return 0;
}

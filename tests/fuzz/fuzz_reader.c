/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as a recording or a live file: never a crash, a hang, or memory without bound. The
 * first byte says how the rest is taken: 0 a recording as it is, 1 a recording whose checksums are
 * made good (so that what lies behind them is reached too), 2 a live file of one ring, whose
 * header, ring and slots stand behind each other in the input.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../../format/block.h"
#include "../../format/reader.h"
#include "../../format/ring.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static int hear_def(void *ctx, const struct gmt_def *d)
{
	const uint8_t *p = d->payload;

	for (uint32_t i = 0; i < d->len; i++)
		*(uint64_t *)ctx += p[i]; /* a sanitizer sees whether all of it is there */
	return 0;
}

static int hear_event(void *ctx, const struct gmt_event *e)
{
	*(uint64_t *)ctx += e->seq;
	return 0;
}

static void read_all(int fd)
{
	static const struct gmt_tool tool = { .def = hear_def, .event = hear_event };
	char path[40];
	struct gmt_reader *r;
	uint64_t sum = 0;
	int err;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	r = gmt_reader_open(path, &err);
	if (!r && err >= 0)
		abort();
	if (!r)
		return;
	gmt_reader_run(r, 0, UINT64_MAX, &tool, &sum);
	gmt_reader_run(r, 1000, 500000, &tool, &sum);
	gmt_reader_close(r);
}

static void put(int fd, uint64_t at, const void *data, size_t len)
{
	if (pwrite(fd, data, len, (off_t)at) != (ssize_t)len)
		abort();
}

static void make_good(uint8_t *p, size_t len)
{
	struct gmt_file_header f;
	struct gmt_block_header b;

	if (len < sizeof(f))
		return;
	memcpy(&f, p, sizeof(f));
	f.version = GMT_VERSION;
	f.header_bytes = sizeof(f);
	gmt_file_header_seal(&f);
	memcpy(p, &f, sizeof(f));
	for (size_t at = sizeof(f); at + sizeof(b) <= len;) {
		memcpy(&b, p + at, sizeof(b));
		if (b.stored_bytes > len - at - sizeof(b))
			b.stored_bytes = (uint32_t)(len - at - sizeof(b));
		gmt_block_seal(&b, p + at + sizeof(b));
		memcpy(p + at, &b, sizeof(b));
		at += sizeof(b) + b.stored_bytes;
	}
}

static void put_live(int fd, const uint8_t *data, size_t len)
{
	static const size_t sizes[] = { sizeof(struct gmt_live_header), sizeof(struct gmt_ring) };
	static const uint64_t places[] = { 0, GMT_LIVE_PAGE };

	for (int i = 0; i < 2; i++) {
		size_t n = len < sizes[i] ? len : sizes[i];

		put(fd, places[i], data, n);
		data += n;
		len -= n;
	}
	put(fd, GMT_LIVE_PAGE + GMT_RING_HEAD, data, len);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static int fd = -1; /* kept: to make one takes as long as to read it */
	uint8_t *copy = malloc(len + 1);

	if (fd < 0)
		fd = memfd_create("fuzz", MFD_CLOEXEC);
	if (fd < 0 || !copy || ftruncate(fd, 0))
		abort();
	if (len > 1) {
		memcpy(copy, data + 1, len - 1);
		if (data[0] == 1)
			make_good(copy, len - 1);
		if (data[0] == 2)
			put_live(fd, copy, len - 1);
		else
			put(fd, 0, copy, len - 1);
	}
	read_all(fd);
	free(copy);
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A recording and the live file beside it, laid from pieces: blocks of every type with good
 * checksums (those of groups packed by zstd, so that any bytes reach the columns), noise between
 * them, rings with any heads, tails and slots. Never a crash or a hang; every run gives the same;
 * what is copied into a new recording, as `recover` does, reads back as the same events (where
 * headers say what is not so of their blocks, events out of order may come in another one, so only
 * their number is compared).
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define ZSTD_STATIC_LINKING_ONLY
#include <zstd.h>

#include "../../format/block.h"
#include "../../format/codec_copies.h"
#include "../../format/codec.h"
#include "../../format/reader.h"
#include "../../format/record.h"
#include "../../format/ring.h"
#include "../../format/varint.h"
#include "../../format/writer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

#define PID	4711
#define REGIONS 2
#define LEVEL	1 /* of compression: the quickest */

/* What is laid, and what is left of the input. */
struct laying {
	const uint8_t *p, *end;
	int file, live;
	uint64_t at;	 /* end of the recording */
	uint32_t number; /* of the next block */
	uint64_t region; /* where the live file's last ring begins */
	uint64_t slots;	 /* laid in it */
	bool forged;	 /* headers say what they like of the events */
};

static char folder[] = "/dev/shm/fuzz_salvage.XXXXXX";
static char paths[2][64];
static ZSTD_CCtx *packer; /* kept, as is what a copy's writer needs: the most costly to make */
static void *workspace;

static uint64_t take(struct laying *l, unsigned bytes)
{
	uint64_t v = 0;

	for (unsigned i = 0; i < bytes && l->p < l->end; i++)
		v |= (uint64_t)*l->p++ << 8 * i;
	return v;
}

static size_t take_length(struct laying *l)
{
	size_t n = (size_t)take(l, 2), left = (size_t)(l->end - l->p);

	return n < left ? n : left;
}

static void put(int fd, uint64_t at, const void *data, size_t len)
{
	if (pwrite(fd, data, len, (off_t)at) != (ssize_t)len)
		abort();
}

static void append(struct laying *l, const void *data, size_t len)
{
	put(l->file, l->at, data, len);
	l->at += len;
}

/* Of a later version, or of another process than the live file. */
static void lay_header(struct laying *l, bool later, bool other)
{
	struct gmt_file_header h = { .version = GMT_VERSION + later, .pid = PID + other };

	h.header_bytes = sizeof(h);
	gmt_file_header_seal(&h);
	append(l, &h, sizeof(h));
}

static void widen(struct gmt_block_header *h, const struct gmt_event *e, bool first)
{
	if (first || e->seq < h->first_seq)
		h->first_seq = e->seq;
	if (e->seq > h->last_seq)
		h->last_seq = e->seq;
}

/* The least and greatest seq of the events that can be decoded, as the writer would note them. */
static void note_seqs(struct laying *l, struct gmt_block_header *h)
{
	static struct gmt_codec codec; /* of the group, from block to block */
	static struct gmt_past past;
	struct cursor columns[GMT_COLUMNS];
	bool group = gmt_block_in_group(h);
	struct gmt_event e;
	size_t at = 0;

	past.copy.left = 0;
	if (!group || gmt_block_place(h) == 0) {
		memset(&codec, 0, sizeof(codec));
		past.count = 0;
	}
	if (group && !gmt_columns_open(columns, l->p, h->raw_bytes))
		return;
	for (uint32_t i = 0; i < h->count; i++) {
		long n = h->codec == GMT_CODEC_COPIES
				 ? gmt_decode_copies(&past, &codec, columns, &e)
			 : group ? gmt_decode_columns(&codec, columns, &e)
				 : gmt_decode_event(&codec, l->p + at, h->raw_bytes - at, &e);
		if (n < 0)
			break;
		at += (size_t)n;
		widen(h, &e, i == 0);
	}
}

/* A block's payload as a part of its group's frame. */
static size_t pack(struct laying *l, const struct gmt_block_header *h, uint8_t *out)
{
	ZSTD_inBuffer in = { l->p, h->raw_bytes, 0 };
	ZSTD_outBuffer to = { out, GMT_BLOCK_STORED_MAX, 0 };

	if (gmt_block_place(h) == 0) {
		ZSTD_CCtx_reset(packer, ZSTD_reset_session_and_parameters);
		ZSTD_CCtx_setParameter(packer, ZSTD_c_windowLog, GMT_GROUP_WINDOW);
		ZSTD_CCtx_setParameter(packer, ZSTD_c_compressionLevel, 1);
	}
	if (ZSTD_isError(ZSTD_compressStream2(packer, &to, &in, ZSTD_e_flush)))
		abort();
	return to.pos;
}

static void lay_block(struct laying *l, enum gmt_block_type type, enum gmt_block_codec codec)
{
	static uint8_t stored[GMT_BLOCK_STORED_MAX];
	struct gmt_block_header h = { .type = (uint8_t)type, .codec = (uint8_t)codec };

	h.number = l->number++;
	h.count = (uint32_t)take(l, 1);
	if (gmt_block_in_group(&h))
		h.group = (uint16_t)take(l, 1);
	h.first_seq = take(l, 1);
	h.last_seq = h.first_seq + h.count;
	h.last_ns = UINT64_MAX;
	h.raw_bytes = (uint32_t)take_length(l);
	if (!l->forged && type == GMT_BLOCK_EVENTS) {
		h.first_seq = h.last_seq = 0;
		note_seqs(l, &h);
	}
	if (gmt_block_in_group(&h)) {
		h.stored_bytes = (uint32_t)pack(l, &h, stored);
	} else {
		memcpy(stored, l->p, h.raw_bytes);
		h.stored_bytes = h.raw_bytes;
	}
	l->p += h.raw_bytes;
	gmt_block_seal(&h, stored);
	append(l, &h, sizeof(h));
	append(l, stored, h.stored_bytes);
}

static void lay_noise(struct laying *l)
{
	size_t n = take_length(l);

	append(l, l->p, n);
	l->p += n;
}

static void lay_ring(struct laying *l)
{
	static const struct gmt_live_header h = {
		.magic = GMT_LIVE_MAGIC,
		.version = GMT_VERSION,
		.pid = PID,
		.page = GMT_LIVE_PAGE,
		.region = GMT_RING_REGION,
		.slots = GMT_RING_SLOTS,
		.slot_bytes = GMT_SLOT_BYTES,
	};
	struct gmt_ring ring = { .tail = take(l, 2) };

	if (l->region >= GMT_LIVE_PAGE + (REGIONS - 1) * (uint64_t)GMT_RING_REGION)
		return;
	ring.head = ring.tail + take(l, 1);
	put(l->live, 0, &h, sizeof(h));
	l->region = l->region ? l->region + GMT_RING_REGION : GMT_LIVE_PAGE;
	l->slots = ring.tail;
	put(l->live, l->region, &ring, sizeof(ring));
}

static void lay_slot(struct laying *l)
{
	struct gmt_slot s = { .commit = l->slots + 1 };
	uint8_t *bytes = (uint8_t *)&s + sizeof(s.commit);
	size_t left = (size_t)(l->end - l->p), n = sizeof(s) - sizeof(s.commit);

	if (!l->region)
		return;
	n = n < left ? n : left;
	memcpy(bytes, l->p, n);
	l->p += n;
	put(l->live, l->region + GMT_RING_HEAD + l->slots++ % GMT_RING_SLOTS * GMT_SLOT_BYTES, &s,
	    sizeof(s));
}

static void lay_piece(struct laying *l)
{
	switch (take(l, 1) % 8) {
	case 0:
		return lay_block(l, GMT_BLOCK_DEFS, GMT_CODEC_STORED);
	case 1:
		return lay_block(l, GMT_BLOCK_EVENTS, GMT_CODEC_STORED);
	case 2:
		return lay_block(l, GMT_BLOCK_EVENTS, GMT_CODEC_GROUP);
	case 3:
		return lay_block(l, GMT_BLOCK_EVENTS, GMT_CODEC_COPIES);
	case 4:
		return lay_noise(l);
	case 5:
		return lay_ring(l);
	case 6:
		return lay_slot(l);
	default:
		return lay_block(l, take(l, 1) & 1 ? GMT_BLOCK_END : GMT_BLOCK_INDEX,
				 GMT_CODEC_STORED);
	}
}

/* ---- what is read ---- */

struct heard {
	struct gmt_codec codec;
	struct gmt_writer *writer; /* copies too */
	uint64_t hash, events, defs;
};

static void add(struct heard *h, const void *data, size_t len)
{
	const uint8_t *p = data;

	for (size_t i = 0; i < len; i++)
		h->hash = (h->hash ^ p[i]) * 0x100000001b3ull;
}

static int hear_def(void *ctx, const struct gmt_def *d)
{
	struct heard *h = ctx;

	add(h, &d->kind, sizeof(d->kind));
	add(h, &d->id, sizeof(d->id));
	add(h, d->payload, d->len);
	h->defs++;
	return h->writer ? gmt_writer_def(h->writer, d) : 0;
}

/* Only the members that its kind carries go into a file. */
static int hear_event(void *ctx, const struct gmt_event *e)
{
	struct heard *h = ctx;
	uint8_t buf[GMT_EVENT_MAX];

	add(h, buf, gmt_encode_event(&h->codec, e, buf));
	h->events++;
	return h->writer ? gmt_writer_event(h->writer, e) : 0;
}

static int hear_repeat(void *ctx, const struct gmt_repeat *r)
{
	(void)ctx;
	if (!r->count || r->of_seq >= r->first_seq)
		abort();
	return 0;
}

static void hear_progress(void *ctx, uint64_t done, uint64_t all)
{
	(void)ctx;
	if (done > all)
		abort();
}

static const struct gmt_tool tool = {
	.def = hear_def, .event = hear_event, .repeat = hear_repeat, .progress = hear_progress
};

static int hear(struct gmt_reader *r, struct heard *h, struct gmt_writer *w, uint64_t from,
		uint64_t to)
{
	memset(h, 0, sizeof(*h));
	h->writer = w;
	return gmt_reader_run(r, from, to, &tool, h);
}

static bool same(const struct heard *a, const struct heard *b)
{
	return a->hash == b->hash && a->events == b->events && a->defs == b->defs;
}

static void read_copy(int fd, const struct heard *first, bool forged)
{
	static struct heard again;
	struct gmt_reader *r;
	char path[40];
	int err;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	r = gmt_reader_open(path, &err);
	if (!r || hear(r, &again, NULL, 0, UINT64_MAX) || gmt_reader_info(r)->truncated ||
	    !(forged ? again.events <= first->events : same(first, &again)))
		abort();
	gmt_reader_close(r);
}

static void copy(struct gmt_reader *r, const struct heard *first, bool forged)
{
	static struct heard again;
	struct gmt_writer_info info = { .pid = PID, .level = LEVEL };
	int fd = memfd_create("copy", MFD_CLOEXEC), err;
	struct gmt_writer *w =
		gmt_writer_open(workspace, gmt_writer_workspace(LEVEL), fd, &info, &err);

	if (!w || hear(r, &again, w, 0, UINT64_MAX) || !same(first, &again) || gmt_writer_finish(w))
		abort();
	read_copy(fd, first, forged);
	close(fd);
}

static void read_all(const char *path, bool copied, bool forged)
{
	static struct heard first, part;
	struct gmt_reader *r;
	int err, rc;

	r = gmt_reader_open(path, &err);
	if (!r && err >= 0)
		abort();
	if (!r)
		return;
	rc = hear(r, &first, NULL, 0, UINT64_MAX);
	if (rc == -GMT_ERR_UNKNOWN_KIND) {
		gmt_reader_close(r);
		return;
	}
	if (rc || hear(r, &part, NULL, 1000, 500000) || part.events > first.events)
		abort();
	if (copied)
		copy(r, &first, forged);
	gmt_reader_close(r);
}

static void remove_all(void)
{
	ZSTD_freeCCtx(packer);
	free(workspace);
	unlink(paths[0]);
	unlink(paths[1]);
	rmdir(folder);
}

static void prepare(void)
{
	int err = 0;

	if (paths[0][0])
		return;
	if (!mkdtemp(folder))
		abort();
	if (gmt_reader_open(folder, &err) || err >= 0)
		abort(); /* a folder is no recording */
	snprintf(paths[0], sizeof(paths[0]), "%s/run.gmt", folder);
	snprintf(paths[1], sizeof(paths[1]), "%s/run.gmt.live", folder);
	atexit(remove_all);
	packer = ZSTD_createCCtx();
	workspace = aligned_alloc(64, (gmt_writer_workspace(LEVEL) + 63) & ~(size_t)63);
}

static int make(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	if (fd < 0)
		abort();
	return fd;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct laying l = { .p = data, .end = data + len };
	uint8_t choice;

	if (!len)
		return 0;
	prepare();
	l.file = make(paths[0]);
	l.live = make(paths[1]);
	choice = (uint8_t)take(&l, 1);
	l.forged = choice & 8;
	if (choice & 1)
		lay_header(&l, choice & 16, choice & 32);
	for (int i = 0; i < 64 && l.p < l.end; i++)
		lay_piece(&l);
	close(l.file);
	close(l.live);
	read_all(paths[choice & 2 ? 1 : 0], choice & 4, l.forged);
	return 0;
}

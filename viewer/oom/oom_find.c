/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which refusals a recording has. A framework that reports them itself is believed; without one, or
 * for a library's own memory, it is the CUDA call that was refused.
 */
#include "oom.h"

#include "../../format/record.h"

enum { DEVICES = 64 };

struct find {
	uint64_t nth, count;
	struct refusal found;
	struct gmt_event fail;	   /* the latest refused call of the framework */
	bool first_known[DEVICES]; /* of the context's share */
	uint64_t first[DEVICES];
	struct model model;
	bool reports; /* the framework reports refusals itself */
};

static bool is_device_memory(uint64_t memory)
{
	return memory == GMT_MEM_DEVICE || memory == GMT_MEM_PITCHED || memory == GMT_MEM_ASYNC ||
	       memory == GMT_MEM_ARRAY || memory == GMT_MEM_PHYSICAL;
}

/* A call of the framework's allocator is tried again, and if that fails too it says so itself. */
static bool is_refusal(const struct find *f, const struct gmt_event *e)
{
	if (e->kind == GMT_BLOCK_OOM)
		return true;
	if (e->kind != GMT_MEM_FAIL || e->device < 0 || !is_device_memory(e->arg0))
		return false;
	return !f->reports && (!(e->flags & GMT_FLAG_FRAMEWORK) || e->arg0 == GMT_MEM_ASYNC);
}

static void note_refusal(struct find *f, const struct gmt_event *e)
{
	bool own = f->fail.kind && f->fail.thread == e->thread && f->fail.device == e->device;

	f->count++;
	if (f->nth && f->nth != f->count)
		return;
	f->found = (struct refusal){ .event = *e, .nth = f->count };
	if (e->kind == GMT_MEM_FAIL)
		f->found.fail = *e;
	else if (own)
		f->found.fail = f->fail;
	f->fail.kind = 0;
}

static void note_alloc(struct find *f, const struct gmt_event *e)
{
	if (f->fail.kind && e->thread == f->fail.thread)
		f->fail.kind = 0;
	if (f->found.nth && e->device == f->found.event.device)
		f->found.later_allocs++;
}

static void note_sample(struct find *f, const struct gmt_event *e)
{
	if (e->device < 0 || e->device >= DEVICES || f->first_known[e->device])
		return;
	f->first_known[e->device] = true;
	f->first[e->device] = f->model.devices[e->device].context;
}

static int meet(void *ctx, const struct gmt_event *e)
{
	struct find *f = ctx;

	model_event(&f->model, e);
	if (is_refusal(f, e))
		note_refusal(f, e);
	else if (e->kind == GMT_MEM_FAIL && e->flags & GMT_FLAG_FRAMEWORK)
		f->fail = *e;
	else if (e->kind == GMT_BLOCK_ALLOC)
		note_alloc(f, e);
	else if (e->kind == GMT_MEMINFO)
		note_sample(f, e);
	return 0;
}

static int learn(void *ctx, const struct gmt_event *e)
{
	bool *reports = ctx;

	*reports |= e->kind == GMT_BLOCK_OOM;
	return 0;
}

bool oom_find(struct refusal *out, struct recording *r, uint64_t nth, int *rc)
{
	struct find f = { .nth = nth };

	*rc = recording_run(r, UINT64_MAX, learn, &f.reports);
	if (*rc)
		return false;
	model_init(&f.model, &r->defs);
	f.model.bare = true;
	*rc = recording_run(r, UINT64_MAX, meet, &f);
	model_free(&f.model);
	*out = f.found;
	out->count = f.count;
	if (out->nth && out->event.device >= 0 && out->event.device < DEVICES)
		out->context = f.first[out->event.device];
	return !*rc && out->nth;
}

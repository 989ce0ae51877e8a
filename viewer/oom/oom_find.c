/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which refusals a recording has, in one pass that only decodes. A framework that reports them
 * itself is believed; without one, or for a library's own memory, it is the CUDA call that was
 * refused. Which of the two it is shows only at the end: both are looked for.
 */
#include "oom.h"

#include "../../format/record.h"

struct search {
	bool reported; /* by the framework itself */
	uint64_t nth, count;
	struct refusal found;
	struct gmt_event fail; /* the latest refused call of the framework */
};

struct find {
	struct search reported, called;
	struct values *values;
};

/* A call of the framework's allocator is tried again, and if that fails too it says so itself. */
static bool is_refusal(const struct search *s, const struct gmt_event *e)
{
	if (e->kind == GMT_BLOCK_OOM)
		return s->reported;
	return !s->reported && e->device >= 0 && model_is_device_memory(e->arg0) &&
	       (!(e->flags & GMT_FLAG_FRAMEWORK) || e->arg0 == GMT_MEM_ASYNC);
}

static void note_refusal(struct search *s, const struct gmt_event *e)
{
	bool own = s->fail.kind && s->fail.thread == e->thread && s->fail.device == e->device;

	s->count++;
	if (s->nth && s->nth != s->count)
		return;
	s->found = (struct refusal){ .event = *e, .nth = s->count };
	if (e->kind == GMT_MEM_FAIL)
		s->found.fail = *e;
	else if (own)
		s->found.fail = s->fail;
	s->fail.kind = 0;
}

static void note_alloc(struct search *s, const struct gmt_event *e)
{
	if (s->fail.kind && e->thread == s->fail.thread)
		s->fail.kind = 0;
	if (s->found.nth && e->device == s->found.event.device)
		s->found.later_allocs++;
}

static void meet_one(struct search *s, const struct gmt_event *e)
{
	if (e->kind == GMT_BLOCK_ALLOC)
		note_alloc(s, e);
	else if (is_refusal(s, e))
		note_refusal(s, e);
	else if (e->kind == GMT_MEM_FAIL && e->flags & GMT_FLAG_FRAMEWORK)
		s->fail = *e;
}

static int meet(void *ctx, const struct gmt_event *e)
{
	struct find *f = ctx;

	if (e->kind == GMT_BLOCK_ALLOC || e->kind == GMT_BLOCK_OOM || e->kind == GMT_MEM_FAIL) {
		meet_one(&f->reported, e);
		meet_one(&f->called, e);
	} else if (f->values) {
		values_event(f->values, e);
	}
	return 0;
}

bool oom_find(struct refusal *out, struct recording *r, uint64_t nth, struct values *values,
	      int *rc)
{
	struct find f = { .reported = { .reported = true, .nth = nth },
			  .called = { .nth = nth },
			  .values = values };
	const struct search *s;

	*rc = recording_run(r, UINT64_MAX, meet, &f);
	s = f.reported.count ? &f.reported : &f.called;
	*out = s->found;
	out->count = s->count;
	return !*rc && out->nth;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Reads only the refusals of every rank, into a table of marks. Full tables of all ranks would take
 * four times as long and are needed only for the rank that failed first. */
#include "oom_ranks.h"

#include "../../format/record.h"
#include "../base/sorted.h"

void oom_ranks_note(struct oom_rank *x, const struct recording *r, const struct refusal *refusal)
{
	x->failed = true;
	x->wall_ns = (int64_t)refusal->event.ns + r->info->realtime_minus_monotonic_ns;
	x->asked = refusal->event.size;
}

struct look {
	struct lives marks;
	uint64_t dropped;
};

static int keep_refusal(void *ctx, const struct gmt_event *e)
{
	struct look *l = ctx;

	if (e->kind == GMT_BLOCK_OOM || e->kind == GMT_MEM_FAIL)
		lives_add_mark(&l->marks, e, STAGE_OUTSIDE);
	if (e->kind == GMT_DROPPED)
		l->dropped += e->arg0;
	return 0;
}

static int read_rank(struct oom_rank *x, uint64_t nth, bool alone)
{
	struct look l = { 0 };
	struct refusal refusal;
	struct recording r;
	int rc = recording_open(&r, x->file.path);

	if (rc)
		return rc;
	if (!alone) {
		lives_init(&l.marks);
		rc = recording_run(&r, keep_refusal, &l);
		if (!rc && refusals_find(&refusal, &l.marks, nth))
			oom_ranks_note(x, &r, &refusal);
		x->state = recording_state(&r);
		x->dropped = l.dropped;
		lives_free(&l.marks);
	}
	recording_close(&r);
	return rc;
}

COMPARE(by_time, struct oom_rank,
	ORDER(y->failed, x->failed) ?: (x->failed ? ORDER(x->wall_ns, y->wall_ns) : 0) ?:
	strcmp(x->file.path, y->file.path))

int oom_ranks_find(struct oom_ranks *out, char *const *paths, uint64_t nth)
{
	size_t bad = 0;
	int rc = 0;

	*out = (struct oom_ranks){ 0 };
	for (size_t i = 0; paths[i]; i++) {
		struct oom_rank *x = need_item(out->items, out->count, out->room);
		int err;

		*x = (struct oom_rank){ 0 };
		ranks_look(&x->file, need_text(paths[i]));
		err = read_rank(x, nth, !paths[1]);
		out->failed += x->failed;
		bad += err != 0;
		rc = err ? err : rc;
	}
	/* A rank that was killed early might have left nothing; the others are still useful. */
	if (bad < out->count)
		rc = 0;
	if (!rc)
		qsort(out->items, out->count, sizeof(*out->items), by_time);
	else
		oom_ranks_free(out);
	return rc;
}

void oom_ranks_free(struct oom_ranks *r)
{
	for (size_t i = 0; i < r->count; i++)
		ranks_look_free(&r->items[i].file);
	free(r->items);
	*r = (struct oom_ranks){ 0 };
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "kept.h"

#include "../classes/study.h"
#include "../recording/symbols.h"

#define PART 65536

static void note_event(struct kept *k, const struct gmt_event *e)
{
	struct kept_part *p;

	if (!k->part_count || (k->in_part >= PART && e->seq > k->last_seq)) {
		p = need_item(k->parts, k->part_count, k->part_room);
		*p = (struct kept_part){ e->seq, e->time_ns, e->time_ns };
		k->in_part = 0;
	}
	p = &k->parts[k->part_count - 1];
	p->least_ns = e->time_ns < p->least_ns ? e->time_ns : p->least_ns;
	p->most_ns = e->time_ns > p->most_ns ? e->time_ns : p->most_ns;
	k->in_part++;
	k->last_seq = e->seq;
}

static int read_event(void *ctx, const struct gmt_event *e)
{
	struct kept *k = ctx;

	note_event(k, e);
	tally_event(&k->tally, e);
	model_event(&k->model, e);
	return 0;
}

int kept_read(struct kept *k, struct recording *r)
{
	int rc;

	*k = (struct kept){ .tally.defs = &r->defs };
	model_init(&k->model, &r->defs);
	study_begin(&k->model);
	rc = recording_run(r, read_event, k);
	model_settle(&k->model);
	if (rc) {
		kept_free(k);
		return rc;
	}
	r->kept = k;
	k->tally.launches = k->model.uses.tally.launches;
	k->tally.launches_unread = k->model.uses.tally.unread;
	k->names = r->defs.names = symbols_new(&r->defs);
	return 0;
}

void kept_free(struct kept *k)
{
	if (k->names)
		symbols_free(k->names);
	model_free(&k->model);
	free(k->parts);
}

struct counting {
	struct tally *tally;
	struct use_tally uses;
};

static int count_event(void *ctx, const struct gmt_event *e)
{
	struct counting *c = ctx;

	use_tally_event(&c->uses, e);
	return tally_event(c->tally, e);
}

int kept_tally(struct recording *r, struct tally *t)
{
	const struct kept *k = r->kept;
	struct counting c = { .tally = t };
	int rc = 0;

	*t = k ? k->tally : (struct tally){ .defs = &r->defs };
	if (k)
		return 0;
	rc = recording_run(r, count_event, &c);
	t->launches = c.uses.launches;
	t->launches_unread = c.uses.unread;
	map_free(&c.uses.graphs);
	return rc;
}

bool kept_lend(struct kept *k, struct model *m)
{
	if (!k->model.devices)
		return false;
	model_move(m, &k->model);
	m->home = &k->model;
	return true;
}

/* ---- parts ---- */

struct part_run {
	uint64_t first_seq, end_seq;
	int (*event)(void *, const struct gmt_event *);
	void *ctx;
};

static int pass_event(void *ctx, const struct gmt_event *e)
{
	const struct part_run *p = ctx;

	return e->seq >= p->first_seq && e->seq < p->end_seq ? p->event(p->ctx, e) : 0;
}

static int run_parts(const struct kept *k, struct recording *r, size_t part, size_t count,
		     uint64_t until, int (*event)(void *, const struct gmt_event *), void *ctx)
{
	static const struct gmt_tool tool = { .event = pass_event };
	size_t end = part + count < k->part_count ? part + count : k->part_count;
	struct part_run run = { k->parts[part].first_seq,
				end < k->part_count ? k->parts[end].first_seq : UINT64_MAX, event,
				ctx };
	uint64_t from = UINT64_MAX, most = 0;
	int rc;

	for (size_t i = part; i < end; i++) {
		from = k->parts[i].least_ns < from ? k->parts[i].least_ns : from;
		most = k->parts[i].most_ns > most ? k->parts[i].most_ns : most;
	}
	rc = gmt_reader_run(r->reader, from, until < most ? until : most, &tool, &run);
	return rc < 0 ? recording_refused(r->path, rc) : 0;
}

int kept_run(const struct kept *k, struct recording *r, size_t part, size_t count,
	     int (*event)(void *, const struct gmt_event *), void *ctx)
{
	return run_parts(k, r, part, count, UINT64_MAX, event, ctx);
}

static int note_last(void *ctx, const struct gmt_event *e)
{
	*(struct gmt_event *)ctx = *e;
	return 0;
}

bool kept_last_until(const struct kept *k, struct recording *r, uint64_t ns,
		     struct gmt_event *found)
{
	size_t i = k->part_count;

	while (i && k->parts[i - 1].least_ns > ns)
		i--;
	return i && !run_parts(k, r, i - 1, 1, ns, note_last, found);
}

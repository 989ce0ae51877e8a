/* SPDX-License-Identifier: Apache-2.0 */
/* timeline: memory by class over the time of the run, as a chart or as a reduced series. */
#include "../answers/chart.h"
#include "../answers/parts.h"
#include "command.h"

struct timeline_view {
	struct timeline *timeline;
	struct envelope envelope;
	struct instant peak;
	size_t step;  /* of the current phase */
	bool bunched; /* drawn by events, because most lie close together */
};

static struct row_timeline_point point(const struct envelope_point *p)
{
	return (struct row_timeline_point){ .bytes = p->bytes,
					    .time_ns = p->time_ns,
					    .seq = p->seq };
}

static bool bucket_row(void *ctx, size_t i, struct row_timeline_bucket *row)
{
	const struct envelope *e = ctx;
	const struct envelope_bucket *b = &e->buckets[i];

	*row = (struct row_timeline_bucket){ .first_ns = b->first_ns,
					     .last_ns = b->last_ns,
					     .events = b->events,
					     .min = point(&b->min),
					     .max = point(&b->max),
					     .last = point(&b->last),
					     .categories_at_max = b->at_max,
					     .categories_at_last = b->at_last,
					     .reserved_bytes = b->reserved,
					     .device_bytes = b->used };
	return true;
}

/* Spans are in the order of time, so their steps never decrease. */
static bool phase_row(void *ctx, size_t i, struct row_timeline_phase *row)
{
	struct timeline_view *v = ctx;
	const struct timeline *t = v->timeline;
	const struct span *span = &t->model.spans.items[i];
	bool tail;

	while (v->step < t->steps.count && i > t->steps.items[v->step].last)
		v->step++;
	if (v->step == t->steps.count || i < t->steps.items[v->step].first)
		return false;
	tail = t->steps.tail && v->step == t->steps.count - 1;
	*row = (struct row_timeline_phase){ .step = tail ? 0 : v->step,
					    .phase = phases[span->phase].name,
					    .first_ns = span->extent.first_ns,
					    .last_ns = span->extent.last_ns };
	return true;
}

static void emit_series(struct emit *out, struct timeline_view *v)
{
	const struct model *m = &v->timeline->model;
	const struct envelope_bucket *peak = envelope_peak(&v->envelope);
	struct row_timeline row = { .device = v->timeline->device,
				    .first_ns = m->first_ns,
				    .last_ns = m->last_ns,
				    .peak_bytes = peak->max.bytes,
				    .peak_time_ns = peak->max.time_ns,
				    .peak_text = v->peak.text,
				    .buckets = { v->envelope.count, bucket_row, &v->envelope },
				    .phases = { v->timeline->model.spans.count, phase_row, v } };

	emit_document(out, timeline, &row);
}

static void print_chart(struct emit *out, const struct timeline_view *v,
			const struct timeline_options *o)
{
	const struct envelope_bucket *peak = envelope_peak(&v->envelope);
	const struct model *m = &v->timeline->model;
	struct chart chart = { .envelope = &v->envelope,
			       .timeline = v->timeline,
			       .height = o->height > 0 ? (unsigned)o->height : 16,
			       .blocks = !o->ascii && chart_utf8() };

	emit_peak_title(out, &(struct peak_words){ m, v->timeline->device, peak->max.bytes, 0,
						   peak->max.seq, peak->max.time_ns, &v->peak });
	if (moments_state_only(m))
		emit_line(out, "Nothing changes over time: gpumemtrace report shows the blocks.");
	else
		chart_print(&chart, out);
	if (v->bunched)
		emit_line(out, "%s",
			  "By events, as most are in a small part of the time (--by time).");
}

static size_t most_buckets(const struct timeline_options *o, bool as_json)
{
	unsigned columns, rows;

	if (o->points > 0)
		return (size_t)o->points;
	if (as_json)
		return 1000;
	chart_screen(&columns, &rows);
	return columns > CHART_MARGIN + 20 ? columns - CHART_MARGIN : 20;
}

static void fill_buckets(struct timeline_view *v, enum envelope_axis axis, size_t most)
{
	struct timeline *t = v->timeline;
	struct envelope *e = &v->envelope;

	envelope_init(e, &t->model, t->device, axis, most);
	timeline_series(t,
			&(struct series_sink){
				.change = envelope_change, .event = envelope_event, .ctx = e },
			NULL, 0);
	envelope_end(e);
	instant_of_highest(&v->peak, t);
}

/* Whether 3/4 of the events lie within some 35 % of the time. */
static bool is_bunched(const struct envelope *e)
{
	uint64_t all = 0, in = 0, most = 0;
	size_t wide = e->count * 35 / 100;

	for (size_t i = 0; i < e->count; i++) {
		all += e->buckets[i].events;
		in += e->buckets[i].events - (i >= wide ? e->buckets[i - wide].events : 0);
		most = in > most ? in : most;
	}
	return wide && all > 20 && most > all / 4 * 3;
}

int run_timeline(const struct timeline_options *o, struct emit *out, struct timeline *t)
{
	bool events = o->by && !strcmp(o->by, "events");
	struct timeline_view v = { .timeline = t };
	size_t most = most_buckets(o, emit_json(out));

	fill_buckets(&v, events ? ENVELOPE_EVENTS : ENVELOPE_TIME, most);
	if (!o->by && !emit_json(out) && is_bunched(&v.envelope)) {
		envelope_free(&v.envelope);
		fill_buckets(&v, ENVELOPE_EVENTS, most);
		v.bunched = true;
	}
	emit_series(out, &v);
	if (!emit_json(out))
		print_chart(out, &v, o);
	envelope_free(&v.envelope);
	return 0;
}

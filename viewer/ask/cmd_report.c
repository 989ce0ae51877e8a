/* SPDX-License-Identifier: Apache-2.0 */
/* report: how high was the peak, when, and what held it. */
#include "../answers/parts.h"
#include "../answers/peak.h"
#include "../answers/report.h"
#include "../answers/reserved.h"
#include "../classes/classify.h"
#include "../oom/summary.h"
#include "command.h"

/* The owner of most bytes that is a line of code, or else the owner of most bytes. */
static struct owner largest_line(const struct holders *all)
{
	for (size_t i = 0; i < all->count; i++)
		if (all->items[i].owner.line)
			return all->items[i].owner;
	return all->count ? all->items[0].owner : (struct owner){ .function = "", .file = "" };
}

static bool report_device_row(void *ctx, size_t i, struct row_report_device *row)
{
	struct report *r = ctx;
	const struct moment *mo = &r->shots[i].moment;
	const struct model_device *d = &r->timeline.model.devices[mo->device];
	const struct curve *c = model_curve(d);
	struct holders all = holders_of_blocks(mo, &r->timeline.owners, false);
	struct defs_text uuid = device_fact(&r->timeline.recording->defs, mo->device, "uuid");

	*row = (struct row_report_device){
		.device = mo->device,
		MAYBE_THERE(uuid, uuid.len, uuid.s),
		.peak_bytes = c->peak.bytes,
		.peak_time_ns = c->peak.event.time_ns,
		.end_bytes = c->now,
		.resident_peak_bytes = c->peak.bytes,
		.asleep_bytes = d->asleep_most,
		.peak_reserved_bytes = model_peak_reserved(d),
		.context_bytes = mo->context,
		.categories_at_peak = r->shots[i].bytes,
		.unused_at_peak_bytes = r->used_up[i].known ? r->used_up[i].bytes : NO_NUMBER,
		.unused_at_peak = used_up_rows(&r->used_up[i]),
		.used_bound_bytes = uses_bound(&r->timeline.model, mo->device),
		.ooms = model_ooms(d),
		.pools = private_pools_rows(&r->pools[i]),
		MAYBE_THERE(state_only, moments_state_only(&r->timeline.model), true)
	};
	row->has_engine =
		mo->device == r->timeline.device && engine_document(&r->engine, &row->engine);
	row->owner = largest_line(&all);
	free(all.items);
	return true;
}

/* A device without memory on which the program made a context. */
static bool report_context_row(void *ctx, size_t device, struct row_report_context *row)
{
	struct report *r = ctx;
	struct model *m = &r->timeline.model;
	const struct defs *defs = &r->timeline.recording->defs;
	struct defs_text uuid;
	int d = (int)device;

	if (model_has_memory(&m->devices[d]) ||
	    (!m->contexts[d].seq && !device_fact(defs, d, "context").len))
		return false;
	uuid = device_fact(defs, d, "uuid");
	*row = (struct row_report_context){
		.device = d,
		MAYBE_THERE(uuid, uuid.len, uuid.s),
		.owner = owners_find(&r->timeline.owners,
				     &(struct block){ .stack = m->contexts[d].stack }),
	};
	return true;
}

static void emit_report(struct report *r, struct summary *s, struct emit *out)
{
	struct row_report row = { .events = r->timeline.model.events,
				  .dropped = r->timeline.model.dropped,
				  .truncated = r->timeline.recording->info->truncated,
				  .devices = { r->count, report_device_row, r },
				  .contexts = { MODEL_DEVICES, report_context_row, r },
				  .summary = summary_rows(s),
				  MAYBE_THERE(steps, r->each_step, report_steps_rows(r)),
				  .file_bytes = r->timeline.recording->file_bytes };

	for (size_t i = 0; i < r->count; i++) {
		row.allocs += model_allocs(&r->timeline.model.devices[r->shots[i].moment.device]);
		row.frees += model_frees(&r->timeline.model.devices[r->shots[i].moment.device]);
	}
	row.has_values_not_computed = values_document(&r->values, &row.values_not_computed);
	emit_document(out, report, &row);
}

/* Takes a snapshot of each device's peak, for the devices that had memory. */
static void want_peaks(struct report *r)
{
	for (int d = 0; d < MODEL_DEVICES; d++) {
		const struct model_device *device = &r->timeline.model.devices[d];
		const struct curve *c = model_curve(device);
		struct reserved_peak peak;
		struct snapshot *s;

		if (!model_has_memory(device))
			continue;
		s = &r->shots[r->count];
		s->model = &r->timeline.model;
		s->moment = (struct moment){ .device = d,
					     .seq = c->peak.event.seq,
					     .time_ns = c->peak.event.time_ns,
					     .framework = device->framework };
		model_take(&r->timeline.model, &s->moment);
		snapshot_sort(s, &r->timeline);
		used_up_find(&r->used_up[r->count], &r->timeline, s);
		reserved_find(&peak, &r->timeline, d);
		r->pools[r->count++] = peak.pools;
	}
}

static void print_peak(struct report *r, struct emit *out)
{
	struct peak_answer a;
	struct row_peak row;

	peak_find(&a, &r->timeline);
	row = peak_document(&a);
	emit_document(out, peak, &row);
	peak_free(&a);
}

static int build_report(struct report *r, struct recording *recording)
{
	struct timeline *t = &r->timeline;
	int rc = timeline_open_any(t, recording);

	if (rc)
		return rc;
	if (t->device < 0)
		timeline_look(t, 0);
	values_find(&r->values, &t->model.reads, &t->owners);
	want_peaks(r);
	engine_find(&r->engine, t);
	if (r->each_step)
		report_steps_find(r);
	return 0;
}

static void take_down(struct report *r)
{
	for (size_t i = 0; i < r->count; i++) {
		moment_free(&r->shots[i].moment);
		used_up_free(&r->used_up[i]);
	}
	values_free(&r->values);
	free(r->step_bytes);
	timeline_close(&r->timeline);
	free(r);
}

int run_report(const struct report_options *o, struct emit *out, struct recording *recording)
{
	struct report *r = need_new(sizeof(*r));
	struct summary summary = { 0 };
	int rc;

	r->top = o->top;
	r->each_step = o->steps;
	rc = build_report(r, recording);
	if (rc) {
		free(r);
		return rc;
	}
	summary_find(&summary, &r->timeline, &r->values, recording->path);
	emit_report(r, &summary, out);
	if (o->with_peak && model_main_device(&r->timeline.model) >= 0)
		print_peak(r, out);
	if (!emit_json(out)) {
		report_head(r, out);
		summary_print(&summary, out);
		report_text(r, out);
	}
	take_down(r);
	summary_free(&summary);
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* An out-of-memory failure as JSON, and as text for readers who have never seen this tool. */

#include "../answers/columns.h"
#include "../base/shell.h"
#include "oom.h"

/*
 * The other devices of the process. nn.DataParallel copies the model to each device before every
 * pass and gathers all outputs on the first, so the first holds far more.
 */

static uint64_t peak_of(const struct model_device *d)
{
	return d->seen ? model_curve(d)->peak.bytes : 0;
}

static bool is_other(const struct oom *o, const struct model_device *d)
{
	return d != &o->timeline->model.devices[o->timeline->device] && peak_of(d);
}

static size_t count_others(const struct oom *o)
{
	return SUM_OF(x, o->timeline->model.devices, MODEL_DEVICES, is_other(o, x));
}

/* nn.DataParallel was used. */
static bool has_replicas(const struct oom *o)
{
	return defs_has_file(o->timeline->stacks.defs, "torch/nn/parallel/replicate.py");
}

#define LINE   28 /* columns of a line of code */
#define FIGURE 29 /* columns of a figure's name */

/* Appends the bytes of blocks that a whole step did not use, and the age of their last use. */
static void say_idle(const struct oom *o, const struct holder *h, char *note, size_t room)
{
	const struct use_work *last = uses_work(&o->timeline->model.uses, h->idle_use);
	size_t step = steps_at(&o->timeline->steps, last->seq);
	char part[HUMAN_MAX + 1] = "", since[48] = "before the first step";

	if (!h->idle)
		return;
	if (h->idle < h->bytes)
		snprintf(part, sizeof(part), "%s ", B(h->idle));
	if (step)
		snprintf(since, sizeof(since), "step %zu", step);
	text_add(note, room, ", %snot used since %s, %s launches before", part, since,
		 N(o->works - h->idle_use));
}

static bool holder_row(void *ctx, size_t i, struct row_oom_holder *row)
{
	struct oom_answer *a = ctx;
	const struct holder *h = &a->oom->holders.items[i];

	snprintf(a->note, sizeof(a->note), "%s", holder_words(h));
	if (h->before && category_in(h->category, CLASSES_THAT(GROW_WITH_BATCH)))
		text_add(a->note, sizeof(a->note), ", %s %s", B(h->before),
			 BY_PASS(a->oom) ? "of earlier passes" : "older");
	say_idle(a->oom, h, a->note, sizeof(a->note));
	*row = (struct row_oom_holder){ .class = h->category,
					.owner = h->owner,
					.bytes = h->bytes,
					.blocks = h->blocks,
					.earlier_bytes = h->before,
					.last_use_ns = used_ns(a->oom->shot.model, h->last_use),
					.idle_bytes = h->idle,
					.note = a->note };
	return true;
}

static bool variable_row(void *ctx, size_t i, struct row_oom_variable *row)
{
	struct oom_answer *a = ctx;
	const struct variable_at *x = &a->oom->variables[i];
	const struct defs_variable *v = x->variable;

	*row = (struct row_oom_variable){ .name = v->name.s,
					  .owner = x->owner,
					  .shape = variables_shape(v, a->shape),
					  .type = variables_type(v),
					  .tensors = v->head.tensors ? v->head.tensors : 1,
					  .bytes = v->head.bytes,
					  .words = variables_form(v, a->note) };
	return true;
}

static bool remedy_row(void *ctx, size_t i, struct row_oom_remedy *row)
{
	struct oom_answer *a = ctx;
	const struct oom_remedy *r = &a->remedies[i];

	snprintf(a->note, sizeof(a->note), "%s%s", r->at_most ? "up to " : "", B(r->saves));
	*row = (struct row_oom_remedy){ .name = r->name,
					.what = r->what,
					.saves_bytes = r->saves,
					.at_most = r->at_most,
					.saves = a->note,
					.enough = r->enough,
					.how_known = r->how,
					.claim = r->name,
					.right = r->claim.right,
					.of = r->claim.of,
					.mark = r->enough ? "this request" : "" };
	return true;
}

static bool setting_row(void *ctx, size_t i, struct row_oom_setting *row)
{
	const struct oom *o = ctx;
	const struct oom_setting *x = &o->settings.tried[i];
	bool fits = x->outcome.what == REFUSAL_FITS;

	*row = (struct row_oom_setting){ .alloc_conf = x->conf,
					 .fits = fits,
					 .earlier = x->outcome.what == REFUSAL_EARLIER,
					 MAYBE_THERE(spare_bytes, fits, x->outcome.bytes),
					 MAYBE_THERE(lacking_bytes, !fits, x->outcome.bytes) };
	return true;
}

static bool grown_row(void *ctx, size_t c, struct row_oom_grown *row)
{
	const struct oom *o = ctx;
	uint64_t before = o->compared[c], bytes = o->shot.bytes[c];

	*row = (struct row_oom_grown){ .class = (unsigned)c,
				       .bytes_before = before,
				       .bytes = bytes,
				       .delta = (int64_t)(bytes - before) };
	return before || bytes;
}

static bool device_row(void *ctx, size_t i, struct row_oom_device *row)
{
	const struct oom *o = ctx;
	const struct model_device *d = &o->timeline->model.devices[i];

	*row = (struct row_oom_device){ .device = (int64_t)i, .peak_bytes = peak_of(d) };
	return is_other(o, d);
}

static bool refusal_row(void *ctx, size_t i, struct row_oom_refusal *row)
{
	struct oom_answer *a = ctx;
	struct timeline *t = a->oom->timeline;
	const struct lives_mark *e = rows_at(&t->model.lives.marks, (uint32_t)i);
	const struct span *span = steps_span(&t->steps, &t->model.spans, e->seq);
	size_t step = steps_at(&t->steps, e->seq);
	int64_t offset = t->recording->info->realtime_minus_monotonic_ns;

	a->nth = i ? a->nth : 0;
	if (!refusals_is_one(e, refusals_reported(&t->model.lives)) || e->device < 0)
		return false;
	*row = (struct row_oom_refusal){
		.nth = ++a->nth,
		.device = e->device,
		.time_ns = e->ns,
		.has_unix_ns = offset,
		.unix_ns = (int64_t)e->ns + offset,
		.step = t->steps.tail && step == t->steps.count - 1 ? 0 : step,
		.phase = span ? phases[span->phase].name : "",
		.block_bytes = e->size,
		.owner = owners_find(&t->owners, &(struct block){ .device = e->device,
								  .seq = e->seq,
								  .stack = e->stack,
								  .name = e->name }),
		.module = owners_modules_of(&t->owners, e->stack, a->module, sizeof(a->module)),
	};
	return true;
}

void oom_answer(struct oom_answer *a, struct oom *o)
{
	a->oom = o;
	a->cause = oom_cause(o, a->why);
	oom_settings(&o->settings, o);
	oom_settings_say(&o->settings, a->why);
	oom_say_message(o, a->why);
	a->count = oom_remedies(o, a->cause, a->remedies);
}

/* If no remedy names a line: the line of the request, or the line that made most of the memory. If
 * none is enough: an operation of the request's line that makes more than is needed. */
static const char *line_of(const struct oom_answer *a, char text[LARGE_LINE_ALL])
{
	struct oom *o = a->oom;
	struct large_line l;
	uint64_t others;

	text[0] = 0;
	if (a->cause != CAUSE_activation_spike && a->cause != CAUSE_batch_too_large &&
	    a->cause != CAUSE_unknown)
		return text;
	others = SUM_OF(r, a->remedies, a->count, !oom_remedy_is_general(r->name));
	if (ANY_OF(r, a->remedies, a->count, r->enough && !oom_remedy_is_general(r->name)))
		return text;
	if (a->cause != CAUSE_batch_too_large) {
		large_line_of(&l, o->timeline, &o->shot, &o->wanted_owner);
		l.stack = o->wanted.stack;
		l.size = 0;
		l.blocks++;
		l.known_only = others;
		large_line_look(text, o->timeline, &l);
	}
	if (!others && !text[0] && large_line_find(&l, o->timeline, &o->shot))
		large_line_look(text, o->timeline, &l);
	return text;
}

struct row_oom oom_document(struct oom_answer *a)
{
	struct oom *o = a->oom;
	size_t others = count_others(o);

	return (struct row_oom){
		.asked_bytes = o->asked,
		.free_bytes = o->room.free,
		.free_known = o->room.sampled,
		.largest_hole = o->room.hole,
		.cause = oom_cause_name(a->cause),
		.text = a->why,
		.holders = { o->holders.count, holder_row, a },
		.remedies = { a->count, remedy_row, a },
		.variables = { o->variables_shown, variable_row, a },
		.look_at = line_of(a, a->line),
		.settings = { o->settings.count, setting_row, o },
		.device = o->timeline->device,
		.time_ns = o->refusal.event.ns,
		.nth = o->refusal.nth,
		.ooms = o->refusal.count,
		.went_on = o->refusal.later_allocs,
		.step = o->instant.step,
		.phase = phases[o->phase].name,
		MAYBE_THERE(engine_phase, o->engine.phase, o->engine.phase),
		.stack = o->refusal.event.stack,
		.class = o->wanted.category,
		.owner = o->wanted_owner,
		MAYBE_THERE(replicas, others, others && has_replicas(o)),
		MAYBE_THERE(other_devices, others, { MODEL_DEVICES, device_row, o }),
		.block_bytes = o->block,
		.total_bytes = o->room.total,
		.allocated_bytes = o->allocated,
		.reserved_bytes = o->room.reserved,
		.cached_bytes = o->room.cached,
		.pools = private_pools_rows(&o->pools),
		.waiting_bytes = o->room.waiting,
		.library_bytes = o->libraries,
		.context_bytes = o->context,
		.other_bytes = o->others,
		.categories = o->shot.bytes,
		.compared_step = o->compared_step,
		.grown = { o->compared_step ? CATEGORIES : 0, grown_row, o },
		.refusals = { o->timeline->model.lives.marks.count, refusal_row, a },
	};
}

static void text_head(const struct oom *o, struct emit *out)
{
	char who[OWNER_WORDS], where[INSTANT_MAX + 8] = "";
	enum steps_basis basis = o->timeline->steps.basis;

	instant_line(&o->instant, where, sizeof(where));
	emit_title(out, "Out of memory on device %d: %s requested by %s", o->timeline->device,
		   B(o->asked), owner_words(&o->wanted_owner, who, sizeof(who), 34));
	if (where[0])
		emit_paragraph(out, "", "  ", where);
	if (o->instant.step > 1 && (basis == STEPS_BACKWARD || basis == STEPS_FORWARD))
		emit_line(out, "(%s)", steps_bases[basis].text);
	if (o->instant.step && o->timeline->model.state_seq)
		emit_line(out, "%s", "(steps are counted from where the recording begins)");
	if (o->engine.phase)
		emit_line(out, "The engine's phase: %s (%s)", o->engine.phase,
			  WHO(&o->engine.owner));
	if (o->refusal.count > 1)
		emit_line(out,
			  "Failed allocation %" PRIu64 " of %" PRIu64 " in this recording (--nth)",
			  o->refusal.nth, o->refusal.count);
	if (o->refusal.later_allocs)
		emit_line(out, "%s", "The program caught it and went on.");
	emit_line(out, "%s", "");
}

/* If one device of several ran out, the peaks of the others show whether the work is balanced. */
static void text_devices(const struct oom *o, struct emit *out)
{
	const struct model_device *all = o->timeline->model.devices;
	const struct model_device *highest =
		GREATEST_OF(x, all, MODEL_DEVICES, is_other(o, x), peak_of(x));
	uint64_t here = peak_of(&all[o->timeline->device]);
	bool lower = highest && peak_of(highest) < here / 4 * 3;
	bool replicas = highest && has_replicas(o);
	char text[600];

	if (!replicas && !lower)
		return;
	snprintf(text, sizeof(text), "%s. This device peaked at %s, the other%s at %s%s%s%s",
		 replicas ? "The model runs as replicas on several devices (nn.DataParallel)"
			  : "The program uses several devices",
		 B(here), count_others(o) == 1 ? "" : "s", count_others(o) == 1 ? "" : "most ",
		 B(peak_of(highest)), lower ? ": far lower" : "",
		 replicas && lower ? ". The first one also holds the weights that are copied, "
				     "their gradients and all results: "
				     "DistributedDataParallel spreads these."
				   : ".");
	emit_paragraph(out, "", "  ", text);
	emit_line(out, "%s", "");
}

static void text_room(const struct oom *o, struct emit *out)
{
	bool pooled = moment_is_pooled(&o->shot.moment);

	emit_figure(out, FIGURE, "requested", o->asked, o->block != o->asked ? "%s %s" : NULL,
		    oom_request_words(o), B(o->block));
	if (o->room.sampled)
		emit_figure(out, FIGURE, "free on the device", o->room.free,
			    o->room.total ? "of %s" : NULL, B(o->room.total));
	emit_figure(out, FIGURE, "allocated", o->allocated, NULL);
	if (o->timeline->framework && !pooled) {
		emit_figure(out, FIGURE, "cached, not in use", o->room.cached,
			    o->room.cached ? "in pieces; largest hole %s" : NULL, B(o->room.hole));
		private_pools_print(&o->pools, &o->room, FIGURE, out);
	}
	if (o->libraries)
		emit_figure(out, FIGURE, "other libraries", o->libraries, NULL);
	if (o->context > o->others)
		emit_figure(out, FIGURE, pooled ? "context and free pool" : "context and modules",
			    o->context - o->others, NULL);
	if (o->others)
		emit_figure(out, FIGURE, "other processes", o->others, "at least");
	emit_line(out, "%s", "");
}

struct classes {
	const struct oom *oom;
	unsigned order[CATEGORIES];
};

static bool class_row(void *ctx, size_t i, struct row_oom_grown *row)
{
	const struct classes *c = ctx;

	return grown_row((void *)c->oom, c->order[i], row);
}

static void text_classes(const struct oom *o, struct emit *out)
{
	struct classes c = { .oom = o };
	struct rows_oom_grown rows = { classes_by_bytes(o->shot.bytes, c.order), class_row, &c };
	char since[48];
	const struct text_column columns[] = {
		TEXT_COLUMN("class", oom_grown_class, 2, -28),
		TEXT_COLUMN("bytes", oom_grown_bytes, 1, 10),
		TEXT_COLUMN("share", oom_grown_bytes, 2, 5, .style = COLUMN_SHARE,
			    .all = o->allocated),
		TEXT_COLUMN(since, oom_grown_delta, 2, -1),
	};

	snprintf(since, sizeof(since), "since step %zu's peak", o->compared_step);
	columns_write(out, &document_oom_grown, columns, o->compared_step ? 4 : 3, &rows, 0);
	emit_line(out, "%s", "");
}

static void text_holders(const struct row_oom *row, long top, struct emit *out)
{
	const struct text_column columns[] = {
		TEXT_COLUMN("allocated at", oom_holder_owner, 2, -LINE, .room = LINE),
		TEXT_COLUMN("bytes", oom_holder_bytes, 1, 10),
		TEXT_COLUMN("class", oom_holder_note, 2, -1),
	};

	emit_top(out, oom_holder, &row->holders, columns, top, "  ");
	emit_line(out, "%s", "");
}

static void text_variables(const struct row_oom *row, long top, struct emit *out)
{
	const struct text_column columns[] = {
		TEXT_COLUMN("variables at the request", oom_variable_name, 2, -12,
			    .style = COLUMN_END, .room = LINE),
		TEXT_COLUMN("bytes", oom_variable_bytes, 1, 10),
		TEXT_COLUMN("shape", oom_variable_words, 2, -12),
		TEXT_COLUMN("in", oom_variable_owner, 2, -1, .room = LINE),
	};

	if (!row->variables.count)
		return;
	emit_top(out, oom_variable, &row->variables, columns, top, "  ");
	emit_line(out, "%s", "");
}

static void text_remedies(const struct row_oom *row, struct emit *out)
{
	static const struct text_column columns[] = {
		TEXT_COLUMN("saves", oom_remedy_saves, 1, 16),
		TEXT_COLUMN("enough for", oom_remedy_mark, 2, -12),
		TEXT_COLUMN("change", oom_remedy_what, 2, 0, .style = COLUMN_WRAP),
		TEXT_COLUMN("", oom_remedy_how_known, 33, 0, .style = COLUMN_BELOW),
	};
	struct row_oom_remedy one = { 0 };
	bool any = false;

	if (!row->remedies.count)
		return;
	emit_title(out, "%s", "Changes that would have made room, by this recording");
	for (size_t i = 0; i < row->remedies.count && !any; i++)
		any = row->remedies.fill(row->remedies.ctx, i, &one) && one.mark[0];
	emit_columns(out, oom_remedy, &row->remedies, columns, 0);
	if (any && !row->compared_step && row->step <= 1)
		emit_line(out, "  No step had ended: later requests may need more");
	emit_line(out, "%s", "");
}

void oom_text(const struct oom_answer *a, const struct row_oom *row, long top, struct emit *out)
{
	const struct oom *o = a->oom;
	char lead[64], word[SHELL_WORD];

	text_head(o, out);
	snprintf(lead, sizeof(lead), "Cause: %s. ", row->cause);
	emit_paragraph(out, lead, "  ", row->text);
	if (row->look_at[0])
		emit_paragraph(out, "", "  ", row->look_at);
	emit_line(out, "%s", "");
	text_devices(o, out);
	text_room(o, out);
	text_classes(o, out);
	text_holders(row, top, out);
	text_variables(row, top, out);
	text_remedies(row, out);
	shell_word(o->timeline->recording->path, word);
	emit_line(out, "Where next: gpumemtrace live %s --at oom", word);
	emit_line(out, "            gpumemtrace stack %s %u", word, o->refusal.event.stack);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* leaks: what grows from step to step, and which lines hold it. */
#include "../answers/leaks.h"
#include "../answers/reserved.h"
#include "../answers/used.h"
#include "../recording/owner_words.h"
#include "command.h"

static struct row_leaks_block leaked_block(const struct block *b, size_t step)
{
	return (struct row_leaks_block){ .addr = b->addr,
					 .size = b->size,
					 .stack = b->stack,
					 .born_ns = b->born_ns,
					 .step = step };
}

struct called {
	struct owner module, caller;
	bool others; /* other steps call other modules */
};

/* Finds the module that a step calls (its forward method) and the line that calls it. */
static bool module_of_step(struct timeline *t, size_t step, struct called *found)
{
	struct stacks *s = &t->stacks;
	uint32_t stack = steps_phase(&t->model.spans, &t->steps.items[step], PHASE_FORWARD)
				 .extent.peak_stack;

	stacks_read_python(s, stack);
	for (size_t k = s->count; k-- > 0;) {
		const struct frame *f = &s->frames[k];

		if (!owners_is_forward(f->function) && strcmp(f->function, "forward"))
			continue;
		found->module = (struct owner){ .function = f->function,
						.file = f->file,
						.line = f->first_line ? f->first_line : f->line };
		found->caller = owners_caller(&t->owners, stack);
		return true;
	}
	return false;
}

/* If a step is a call of the outermost module, finds that module. False for other steps. */
static bool module_of(struct timeline *t, struct called *c)
{
	bool any = false;

	if (t->steps.basis != STEPS_FORWARD && t->steps.basis != STEPS_BACKWARD)
		return false;
	for (size_t i = steps_number(&t->steps); i && !c->others; i--) {
		struct called other = { 0 };

		if (!module_of_step(t, i, &other))
			continue;
		c->others = any && strcmp(other.module.function, c->module.function);
		if (!any)
			*c = other;
		any = true;
	}
	return any;
}

static void text_step(struct emit *out, const struct timeline *t, const struct called *c)
{
	char a[OWNER_WORDS], b[OWNER_WORDS];

	emit_sentence(
		out, "",
		"A step here is one call of %s%s%s%s: the outermost module's, as no optimizer's "
		"step was seen%s. If that is one layer of a model, or one of several calls, these "
		"steps are those calls.",
		owner_words(&c->module, a, sizeof(a), 0), c->caller.file[0] ? ", made at " : "",
		c->caller.file[0] ? owner_place(&c->caller, b, sizeof(b), 0) : "",
		c->others ? ", or of another module" : "",
		t->steps.basis == STEPS_FORWARD ? ", and no backward pass" : "");
	emit_line(out, "%s", "");
}

struct leaks_view {
	const struct leaks *leaks;
	struct owners *owners;
	uint64_t growth[MODEL_DEVICES]; /* bytes per step, if --device is not given */
	struct used_up unused;
	struct called called;	      /* the module that a step calls, if row.has_step_is */
	char which[200], module[512]; /* texts of the current row */
};

static bool owner_row(void *ctx, size_t i, struct row_leaks_owner *row)
{
	struct leaks_view *v = ctx;
	const struct leak *l = &v->leaks->items[i];

	v->which[0] = 0;
	if (l->blocks)
		snprintf(v->which, sizeof(v->which),
			 "%s in %s, from step %zu (0x%" PRIx64 ") to step %zu (0x%" PRIx64
			 ", stack %u)",
			 B(l->bytes), MANY(l->blocks, "block"), l->first_step, l->first.addr,
			 l->latest_step, l->latest.addr, l->latest.stack);
	*row = (struct row_leaks_owner){
		.class = l->category,
		.words = category_kept_words(l->category),
		.owner = l->owner,
		.module = owners_modules_of(v->owners, l->blocks ? l->latest.stack : 0, v->module,
					    sizeof(v->module)),
		.bytes_per_step = l->bytes_per_step,
		.bytes = l->bytes,
		.blocks = l->blocks,
		MAYBE_THERE(first, l->blocks, leaked_block(&l->first, l->first_step)),
		MAYBE_THERE(latest, l->blocks, leaked_block(&l->latest, l->latest_step)),
		.which = v->which
	};
	return true;
}

static struct row_leaks leaks_row(struct timeline *t, struct leaks_view *v)
{
	const struct leaks *l = v->leaks;
	struct row_leaks row = { .device = t->device,
				 .steps = steps_number(&t->steps),
				 .from_step = l->from_step,
				 .to_step = l->to_step,
				 .growth_per_step = l->bytes_per_step,
				 .reserved_growth_per_step = reserved_growth(t),
				 .step_basis = steps_bases[t->steps.basis].name,
				 .owners = { l->count, owner_row, v },
				 .change = leaks_change(l),
				 .unused_bytes = v->unused.bytes,
				 .unused_since_step = v->unused.step,
				 .unused = holders_rows(&v->unused.holders) };

	row.has_step_is = module_of(t, &v->called);
	row.step_is.owner = v->called.module;
	return row;
}

/* Reserved memory can grow although allocated bytes do not, for instance by pools of CUDA graphs.
 */
static void print_reserved(struct emit *out, struct timeline *t, uint64_t growth)
{
	char words[RESERVED_WORDS];
	struct reserved_peak peak;

	if (!growth)
		return;
	reserved_find(&peak, t, t->device);
	emit_sentence(out, "", "Reserved memory grows by %s a step; %s.", B(growth),
		      reserved_words(&peak, words, sizeof(words)));
}

static void print_again(struct emit *out, const struct timeline *t, const struct leaks_again *again)
{
	char who[OWNER_WORDS], other[OWNER_WORDS], next[OWNER_WORDS + 64] = "";

	if (2 * again->next.bytes > again->most.bytes) /* neither is most of it */
		text_put(next, sizeof(next), " and %s %s of %s", B(again->next.bytes),
			 category_kept_words(again->next.category),
			 owner_words(&again->next.owner, other, sizeof(other), 0));
	emit_title(out,
		   "Device %d: memory grows by %s from step %zu to step %zu, and is freed at times",
		   t->device, B(again->bytes), again->from, again->to);
	emit_sentence(out, "",
		      "Lines hold more and more in between, %s of it %s of %s%s. If that is "
		      "too much: %s",
		      *next || 2 * again->most.bytes <= again->bytes ? B(again->most.bytes)
								     : "most",
		      category_kept_words(again->most.category),
		      owner_words(&again->most.owner, who, sizeof(who), 0), next, again->change);
}

static void print_growth(struct emit *out, struct timeline *t, const struct leaks_view *v,
			 const struct row_leaks *row, long top)
{
	const struct leaks *l = v->leaks;
	static const struct text_column columns[] = {
		TEXT_COLUMN("per step", leaks_owner_bytes_per_step, 2, 10),
		TEXT_COLUMN("class", leaks_owner_words, 2, -21),
		TEXT_COLUMN("allocated at", leaks_owner_owner, 1, -1, .room = 44,
			    .style = COLUMN_CUT),
		TEXT_COLUMN("", leaks_owner_which, 14, 0, .style = COLUMN_BELOW),
	};
	size_t n = steps_number(&t->steps);

	if (row->has_step_is)
		text_step(out, t, &v->called);
	if (l->from_step == l->to_step) {
		emit_line(out, "Too few steps: %zu found, %s complete ones are needed", n,
			  row->has_step_is ? "four" : "three");
		emit_line(out, "(%s)", steps_bases[t->steps.basis].text);
		return;
	}
	if (!l->count) {
		if (l->again.bytes)
			print_again(out, t, &l->again);
		else
			emit_title(out,
				   "Device %d: no line holds more with each step, from step %zu to "
				   "step %zu",
				   t->device, l->from_step, l->to_step);
		return;
	}
	emit_title(out, "Device %d: %s more %s, from step %zu to step %zu of %zu", t->device,
		   B(l->bytes_per_step), l->each ? "with each step" : "a step on average",
		   l->from_step, l->to_step, n);
	emit_line(out, "%s", "");
	emit_top(out, leaks_owner, &row->owners, columns, top, "  ");
	emit_sentence(out, "", "%s", row->change);
}

static void print_passes(struct emit *out, struct timeline *t, const struct leaks *l)
{
	char text[800];

	if (l->from_step != l->to_step && !l->count && leaks_tail_words(t, text, sizeof(text)))
		emit_sentence(out, "", "%s", text);
	if (leaks_head_words(t, text, sizeof(text)))
		emit_sentence(out, "", "%s", text);
}

static void print_unused(struct emit *out, const struct used_up *u, const struct row_leaks *row,
			 long top)
{
	static const struct text_column columns[] = {
		TEXT_COLUMN("bytes", class_line_bytes, 2, 10),
		TEXT_COLUMN("class", class_line_class, 2, -21),
		TEXT_COLUMN("allocated by", class_line_owner, 1, -1, .room = 44,
			    .style = COLUMN_CUT),
	};
	char classes[200];

	if (!u->bytes)
		return;
	emit_line(out, "%s", "");
	emit_sentence(out, "", "Not used any more, but still in memory: %s %s.", B(u->bytes),
		      used_up_words(u, classes, sizeof(classes)));
	emit_line(out, "%s", "");
	emit_top(out, class_line, &row->unused, columns, top, "  ");
}

/* Looks at the device that grows most. Fills in the growth of each, in bytes per step. */
static void look_where_it_grows(struct timeline *t, uint64_t growth[MODEL_DEVICES])
{
	int most = t->device;

	for (int d = 0; d < MODEL_DEVICES; d++) {
		struct leaks leaks;

		if (!model_has_memory(&t->model.devices[d]))
			continue;
		timeline_look(t, d);
		leaks_find(&leaks, t);
		growth[d] = leaks.bytes_per_step;
		most = growth[d] > growth[most] ? d : most;
		leaks_free(&leaks);
	}
	if (most != t->device)
		timeline_look(t, most);
}

int run_leaks(const struct leaks_options *o, struct emit *out, struct timeline *t)
{
	struct leaks leaks = { 0 };
	struct leaks_view view = { .leaks = &leaks, .owners = &t->owners };
	struct row_leaks row;
	int used = 0;

	for (int d = 0; d < MODEL_DEVICES; d++)
		used += model_has_memory(&t->model.devices[d]);
	if (o->device < 0 && used > 1)
		look_where_it_grows(t, view.growth);
	leaks_find(&leaks, t);
	used_up_at_end(&view.unused, t);
	row = leaks_row(t, &view);
	emit_document(out, leaks, &row);
	print_growth(out, t, &view, &row, o->top);
	if (!emit_json(out)) {
		print_passes(out, t, &leaks);
		print_reserved(out, t, row.reserved_growth_per_step);
	}
	for (int d = 0; d < MODEL_DEVICES && !emit_json(out); d++)
		if (view.growth[d] && d != t->device)
			emit_sentence(out, "", "Device %d grows, too: %s more a step on average.",
				      d, B(view.growth[d]));
	print_unused(out, &view.unused, &row, o->top);
	leaks_free(&leaks);
	used_up_free(&view.unused);
	return 0;
}

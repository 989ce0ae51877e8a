/* SPDX-License-Identifier: Apache-2.0 */
/* modules: which modules' forward passes made what is alive at a moment. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "../answers/module_tree.h"
#include "../base/human.h"
#include "../base/need.h"
#include "../base/say.h"
#include "../documents/document.h"
#include "../moments/moments.h"
#include "class_option.h"
#include "../stacks/owner_words.h"
#include "command.h"

#define WHO 46

struct modules_options {
	const char *file, *at, *class;
	long device, top;
};

struct tree_print {
	struct emit *out;
	const struct modules *modules;
	uint64_t least; /* smaller ones are left out */
};

static void line_of(char *buf, size_t room, const struct module *x, unsigned depth)
{
	int indent = depth * 2 > 24 ? 24 : depth * 2;
	size_t columns = WHO - (size_t)indent;
	struct owner o = { .file = x->file, .line = x->line };
	char text[OWNER_WORDS];

	if (x->line)
		owner_place(&o, text, sizeof(text), columns);
	else
		words_within(x->name, text, sizeof(text), columns);
	snprintf(buf, room, "%*s%s", indent, "", text);
}

static void print_node(const struct tree_print *p, uint32_t at, unsigned depth)
{
	const struct module *x = &p->modules->items[at];
	char who[OWNER_WORDS + 24], b[HUMAN_MAX], s[HUMAN_MAX], n[HUMAN_MAX];

	if (x->bytes < p->least)
		return;
	line_of(who, sizeof(who), x, depth);
	emit_line(p->out, "  %-*s %10s  %5s  %8s", WHO, who, human_bytes(b, x->bytes),
		  human_share(s, x->bytes, p->modules->items[0].bytes), human_count(n, x->blocks));
	for (uint32_t i = x->first; i; i = p->modules->items[i].next)
		print_node(p, i, depth + 1);
}

/* Every node before its children. */
static size_t order(const struct modules *m, uint32_t at, uint32_t *list, size_t n)
{
	for (uint32_t i = m->items[at].first; i; i = m->items[i].next) {
		list[n++] = i;
		n = order(m, i, list, n);
	}
	return n;
}

struct nodes {
	const struct modules *modules;
	uint32_t *order;
};

static bool node_row(void *ctx, size_t i, struct row_modules_node *row)
{
	const struct nodes *n = ctx;
	const struct module *x = &n->modules->items[n->order[i]];

	*row = (struct row_modules_node){ .id = n->order[i],
					  .parent = x->parent,
					  .kind = x->line ? "line" : "module",
					  .name = x->name,
					  .file = x->file,
					  .has_line = x->line,
					  .line = x->line,
					  .bytes = x->bytes,
					  .blocks = x->blocks };
	return true;
}

static void document(struct emit *out, const struct modules *m, const struct snapshot *s,
		     const char *class)
{
	struct nodes nodes = { m, need_new(m->count * sizeof(*nodes.order)) };
	struct row_modules row = { .device = s->moment.device,
				   .time_ns = s->moment.time_ns,
				   .class = class,
				   .bytes = m->items[0].bytes,
				   .outside_bytes = m->outside_bytes,
				   .modules = { order(m, 0, nodes.order, 0), node_row, &nodes } };

	emit_document(out, modules, &row);
	free(nodes.order);
}

static void text(struct emit *out, const struct modules *m, const struct timeline *t,
		 const struct snapshot *s, const char *class, long top)
{
	struct tree_print p = { out, m, 0 };
	char b[HUMAN_MAX], w[MOMENTS_WHEN], n[HUMAN_MAX];

	p.least = top > 0 ? m->items[0].bytes / top : 0;
	emit_title(out, "Device %d%s: %s of %s in %s blocks", s->moment.device,
		   moments_when(&t->model, s->moment.seq, s->moment.time_ns, w, sizeof(w)),
		   human_bytes(b, m->items[0].bytes),
		   strcmp(class, "all") ? category_words(category_by_name(class)) : "all classes",
		   human_count(n, m->items[0].blocks));
	if (!m->items[0].blocks) {
		emit_line(out, "No such block is alive then: --at names another moment, --class "
			       "all shows every class.");
		return;
	}
	emit_line(out, "%s", "");
	emit_title(out, "  %-*s %10s  %5s  %8s", WHO, "made in the forward pass of", "bytes",
		   "share", "blocks");
	for (uint32_t i = m->items[0].first; i; i = m->items[i].next)
		print_node(&p, i, 0);
	if (m->outside_blocks)
		emit_line(out, "  %-*s %10s  %5s  %8s", WHO, "outside of modules",
			  human_bytes(b, m->outside_bytes),
			  human_share(w, m->outside_bytes, m->items[0].bytes),
			  human_count(n, m->outside_blocks));
}

static int class_number(const char *name, int *category)
{
	*category = -1;
	return strcmp(name, "all") ? class_option(name, category) : 0;
}

/* The seq of the moment; its own run over the events, as marks and times need one. */
static int find_moment(struct timeline *t, struct recording *r, struct moment_query *q,
		       uint64_t *seq)
{
	struct model survey;
	int rc = moments_survey(r, &survey, q);

	if (!rc)
		rc = moments_resolve(&survey, t->device, q, seq);
	model_free(&survey);
	return rc;
}

/* The highest moment of all forward and backward passes: an optimizer's step, where the run's peak
 * may be, holds no activations. */
static uint64_t highest_pass(const struct timeline *t)
{
	const struct extent *best = NULL;

	for (size_t i = 0; i < t->spans.count; i++) {
		const struct span *s = &t->spans.items[i];

		if ((s->phase == PHASE_FORWARD || s->phase == PHASE_BACKWARD) &&
		    (!best || s->extent.peak > best->peak))
			best = &s->extent;
	}
	return best ? best->peak_seq : t->model.devices[t->device].blocks.peak.event.seq;
}

static int answer(struct emit *out, struct recording *r, const struct modules_options *o,
		  struct moment_query *q, int category)
{
	const char *class = o->class ? o->class : "activations";
	struct timeline t = { 0 };
	struct snapshot s;
	struct modules m;
	uint64_t seq;
	int rc = timeline_open(&t, r, o->device);

	if (rc)
		return rc;
	rc = o->at ? find_moment(&t, r, q, &seq) : 0;
	if (!o->at)
		seq = highest_pass(&t);
	if (!rc) {
		snapshot_take(&s, &t, seq);
		modules_find(&m, &s, category, &t.stacks);
		document(out, &m, &s, class);
		text(out, &m, &t, &s, class, o->top);
		modules_free(&m);
		snapshot_free(&s);
	}
	timeline_close(&t);
	return rc;
}

static int run_modules(const void *options, struct emit *out)
{
	const struct modules_options *o = options;
	struct moment_query q;
	struct recording r;
	int category;
	int rc = moments_parse(o->at ? o->at : "peak", &q);

	if (!rc)
		rc = class_number(o->class ? o->class : "activations", &category);
	if (!rc)
		rc = recording_open(&r, o->file);
	if (rc)
		return rc;
	rc = answer(out, &r, o, &q, category);
	recording_close(&r);
	return rc;
}

static void defaults(void *options)
{
	struct modules_options *o = options;

	o->device = -1;
	o->top = 200;
}

static const struct option_row options[] = {
	{ "at", 0, OPTION_TEXT, offsetof(struct modules_options, at), "MOMENT",
	  "as of live; default: highest forward or backward" },
	{ "class", 0, OPTION_TEXT, offsetof(struct modules_options, class), "CLASS",
	  "blocks of this class (activations), or all" },
	{ "device", 0, OPTION_NUMBER, offsetof(struct modules_options, device), "N",
	  "device; default: the one with the highest peak" },
	{ "top", 0, OPTION_NUMBER, offsetof(struct modules_options, top), "N",
	  "leave out what is under 1/N (200); 0 = show all" },
	{ 0 },
};

static const struct operand_row operands[] = {
	{ "FILE", OPERAND_RUN, offsetof(struct modules_options, file) },
	{ 0 },
};

const struct command command_modules = {
	.name = "modules",
	.summary = "which modules hold the activations",
	.text = "Prints the activations of a moment as a tree of the modules whose forward pass "
		"made them, with the lines of each forward. Modules of one class that are called "
		"from one line are one row.",
	.options = options,
	.operands = operands,
	.size = sizeof(struct modules_options),
	.defaults = defaults,
	.run = run_modules,
	.ranks = COMMAND_ROWS,
	.file = offsetof(struct modules_options, file),
};

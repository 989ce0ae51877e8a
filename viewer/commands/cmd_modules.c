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
#include "../stacks/owner_words.h"
#include "command.h"

#define WHO 46

struct modules_options {
	const char *file;
	struct moment_query at; /* no kind: none was given */
	int category;		/* -1: all */
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
		     int category)
{
	struct nodes nodes = { m, need_new(m->count * sizeof(*nodes.order)) };
	struct row_modules row = { .device = s->moment.device,
				   .time_ns = s->moment.time_ns,
				   .class =
					   category < 0 ? "all" : category_name((unsigned)category),
				   .bytes = m->items[0].bytes,
				   .outside_bytes = m->outside_bytes,
				   .modules = { order(m, 0, nodes.order, 0), node_row, &nodes } };

	emit_document(out, modules, &row);
	free(nodes.order);
}

static void text(struct emit *out, const struct modules *m, const struct timeline *t,
		 const struct snapshot *s, const struct modules_options *o)
{
	struct tree_print p = { out, m, 0 };
	char b[HUMAN_MAX], w[MOMENTS_WHEN], n[HUMAN_MAX];

	p.least = o->top > 0 ? m->items[0].bytes / o->top : 0;
	emit_title(out, "Device %d%s: %s of %s in %s blocks", s->moment.device,
		   moments_when(&t->model, s->moment.seq, s->moment.time_ns, w, sizeof(w)),
		   human_bytes(b, m->items[0].bytes),
		   o->category < 0 ? "all classes" : category_words((unsigned)o->category),
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

/* The seq of the moment; its own run over the events, as marks and times need one. */
static int find_moment(struct timeline *t, struct recording *r, struct moment_query q,
		       uint64_t *seq)
{
	struct model survey;
	int rc = moments_survey(r, &survey, &q);

	if (!rc)
		rc = moments_resolve(&survey, t->device, &q, seq);
	model_free(&survey);
	return rc;
}

/* The highest moment of all forward and backward passes: an optimizer's step, where the run's peak
 * may be, holds no activations. */
static uint64_t highest_pass(const struct timeline *t)
{
	const struct extent *best = NULL;

	for (size_t i = 0; i < t->model.spans.count; i++) {
		const struct span *s = &t->model.spans.items[i];

		if ((s->phase == PHASE_FORWARD || s->phase == PHASE_BACKWARD) &&
		    (!best || s->extent.peak > best->peak))
			best = &s->extent;
	}
	return best ? best->peak_seq : t->model.devices[t->device].blocks.peak.event.seq;
}

static int answer(const void *options, struct emit *out, struct recording *r)
{
	const struct modules_options *o = options;
	struct timeline t = { 0 };
	struct snapshot s;
	struct modules m;
	uint64_t seq;
	int rc = timeline_open(&t, r, o->device);

	if (rc)
		return rc;
	seq = highest_pass(&t);
	if (o->at.kind)
		rc = find_moment(&t, r, o->at, &seq);
	if (!rc) {
		snapshot_take(&s, &t, seq);
		modules_find(&m, &s, o->category, &t.stacks);
		document(out, &m, &s, o->category);
		text(out, &m, &t, &s, o);
		modules_free(&m);
		snapshot_free(&s);
	}
	timeline_close(&t);
	return rc;
}

static const struct option_row options[] = {
	OPTION(struct modules_options, at, "at", 0, MOMENT, "MOMENT",
	       "as of live; default: highest forward or backward"),
	OPTION(struct modules_options, category, "class", 0, CLASS, "CLASS",
	       "blocks of this class (activations), or all", .initial = CATEGORY_activations,
	       .words = "all"),
	OPTION_DEVICE(struct modules_options),
	OPTION(struct modules_options, top, "top", 0, NUMBER, "N",
	       "leave out what is under 1/N (200); 0 = show all", .initial = 200),
	{ 0 },
};

const struct command command_modules = {
	.name = "modules",
	.summary = "which modules hold the activations",
	.text = "Prints the activations of a moment as a tree of the modules whose forward pass "
		"made them, with the lines of each forward. Modules of one class that are called "
		"from one line are one row.",
	.options = options,
	.answer = answer,
	COMMAND_FILE(struct modules_options, OPERAND_RUN, COMMAND_ROWS),
};

/* SPDX-License-Identifier: Apache-2.0 */
/* modules: the modules whose forward passes allocated the blocks of a moment. */
#include "../answers/flame.h"
#include "../recording/owner_words.h"
#include "command.h"

#define WHO 46

/* Nodes in the order that they are written in: each before its children. */
struct nodes {
	const struct flame *modules;
	struct node {
		uint32_t id;
		unsigned depth;
	} * order;
	size_t count;
	uint64_t least; /* bytes; smaller nodes are left out */
	char words[OWNER_WORDS + 24];
};

static void put_in_order(struct nodes *n, uint32_t at, unsigned depth)
{
	for (uint32_t i = n->modules->nodes[at].first; i; i = n->modules->nodes[i].next) {
		n->order[n->count++] = (struct node){ i, depth };
		put_in_order(n, i, depth + 1);
	}
}

static const char *module_words(struct nodes *n, const struct flame_node *x, unsigned depth)
{
	int indent = depth * 2 > 24 ? 24 : (int)depth * 2;
	size_t columns = WHO - (size_t)indent;
	struct owner o = { .file = x->file, .line = x->line };
	char text[OWNER_WORDS];

	if (x->line)
		owner_place(&o, text, sizeof(text), columns);
	else
		words_within(x->name, text, sizeof(text), columns);
	snprintf(n->words, sizeof(n->words), "%*s%s", indent, "", text);
	return n->words;
}

static bool node_row(void *ctx, size_t i, struct row_modules_node *row)
{
	struct nodes *n = ctx;
	const struct node *node = &n->order[i];
	const struct flame_node *x = &n->modules->nodes[node->id];

	*row = (struct row_modules_node){ .id = node->id,
					  .parent = x->parent,
					  .kind = x->line ? "line" : "module",
					  .name = x->name,
					  .file = x->file,
					  MAYBE_THERE(line, x->line, x->line),
					  .bytes = x->bytes,
					  .blocks = x->blocks,
					  .words = module_words(n, x, node->depth) };
	return x->bytes >= n->least;
}

/* The rows of the text. The last one is the memory that no module made. */
static bool text_row(void *ctx, size_t i, struct row_modules_node *row)
{
	const struct nodes *n = ctx;

	if (i < n->count)
		return node_row(ctx, i, row);
	*row = (struct row_modules_node){ .words = "outside of modules",
					  .bytes = n->modules->nodes[0].own_bytes,
					  .blocks = n->modules->nodes[0].own_blocks };
	return row->blocks;
}

static void print_module_lines(struct emit *out, struct nodes *nodes, const struct timeline *t,
			       const struct snapshot *s, const struct modules_options *o)
{
	const struct flame_node *all = &nodes->modules->nodes[0];
	struct rows_modules_node rows = { nodes->count + 1, text_row, nodes };
	const struct text_column columns[] = {
		TEXT_COLUMN("made in the forward pass of", modules_node_words, 2, -WHO),
		TEXT_COLUMN("bytes", modules_node_bytes, 1, 10),
		TEXT_COLUMN("share", modules_node_bytes, 2, 5, .style = COLUMN_SHARE,
			    .all = all->bytes),
		TEXT_COLUMN("blocks", modules_node_blocks, 2, 8),
	};
	char w[MOMENTS_WHEN];

	emit_title(out, "Device %d%s: %s of %s in %s", s->moment.device,
		   moments_when(&t->model, s->moment.seq, s->moment.time_ns, w, sizeof(w)),
		   B(all->bytes), o->category < 0 ? "all classes" : categories[o->category].words,
		   MANY(all->blocks, "block"));
	if (!all->blocks) {
		emit_sentence(out, "",
			      "No such block is alive then: --at names another moment, --class "
			      "all shows every class.");
		return;
	}
	emit_line(out, "%s", "");
	nodes->least = o->top > 0 ? all->bytes / o->top : 0;
	emit_columns(out, modules_node, &rows, columns, 0);
	if (!nodes->count)
		emit_paragraph(
			out, "", "",
			"No module is known: the stacks of these blocks have no call of one. "
			"A snapshot of PyTorch and a recording without Python stacks "
			"(GPUMEMTRACE_STACKS=none or native) name none.");
}

static void print_modules(struct emit *out, const struct flame *m, const struct timeline *t,
			  const struct snapshot *s, const struct modules_options *o)
{
	struct nodes nodes = { m, need_new(m->count * sizeof(*nodes.order)), 0, 0, "" };
	struct row_modules row = { .device = s->moment.device,
				   .time_ns = s->moment.time_ns,
				   .class = o->category < 0 ? "all" : categories[o->category].name,
				   .bytes = m->nodes[0].bytes,
				   .outside_bytes = m->nodes[0].own_bytes };

	put_in_order(&nodes, 0, 0);
	row.modules = (struct rows_modules_node){ nodes.count, node_row, &nodes };
	emit_document(out, modules, &row);
	print_module_lines(out, &nodes, t, s, o);
	free(nodes.order);
}

/* The highest moment of all forward and backward passes: an optimizer's step, where the run's peak
 * may be, holds no activations. */
static uint64_t highest_pass(const struct timeline *t)
{
	const struct extent *best = NULL;

	FOR_EACH (const struct span, s, t->model.spans.items, t->model.spans.count)
		if ((s->phase == PHASE_FORWARD || s->phase == PHASE_BACKWARD) &&
		    (!best || s->extent.peak > best->peak))
			best = &s->extent;
	return best ? best->peak_seq : t->model.devices[t->device].blocks.peak.event.seq;
}

int run_modules(const struct modules_options *o, struct emit *out, struct recording *r)
{
	struct timeline t = { 0 };
	struct moment_query at = o->at;
	struct snapshot s;
	struct flame m;
	uint64_t seq;
	int rc = timeline_open_at(&t, r, o->device, &at);

	if (rc)
		return rc;
	seq = highest_pass(&t);
	if (at.kind)
		rc = moments_resolve(&t.model, t.device, &at, &seq);
	if (!rc) {
		snapshot_take(&s, &t, seq);
		flame_build(&m, &s, &t.owners,
			    &(struct flame_how){
				    .modules = true, .places = true, .category = o->category });
		print_modules(out, &m, &t, &s, o);
		flame_free(&m);
		moment_free(&s.moment);
	}
	timeline_close(&t);
	return rc;
}

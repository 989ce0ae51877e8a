/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The call paths of both sides as one tree, for the differential flame graph. Matching lines are
 * one node, even if they moved. Paired blocks are at the path of the new version, so that only new
 * or gone paths have nodes of one side.
 */
#include "diff_page.h"

enum { NODES = 40000, ROWS = 40000 };

struct node {
	uint32_t caller;
	uint64_t function, file;
	unsigned line, was; /* in the new version, and before; 0 = none */
	bool backward;
};

/* Bytes of one class on one node in one finding (1 + its place, 0 = none). */
struct weight {
	uint32_t node, finding;
	unsigned category;
	uint64_t bytes[2], blocks[2];
};

struct stacks_page {
	struct page *page;
	const struct diff *diff;
	uint32_t *was;	 /* line of the new version -> 1 + its line in the old one */
	uint32_t *shown; /* id of a finding -> 1 + its place among them */
	struct node *nodes;
	size_t node_count, node_room, node_limit;
	struct map node_ids;
	uint64_t left_out;
};

/* Bytes at one pair of moments. */
struct weights {
	struct weight *rows;
	size_t count, room, limit;
	struct map ids;
};

static void find_partners(struct stacks_page *s)
{
	const struct diff *d = s->diff;
	uint32_t most = 0;

	s->was = need_new((d->new.place_count + 1) * sizeof(*s->was));
	for (size_t i = 0; i < d->old.place_count; i++)
		if (d->old.places[i].common < d->new.place_count)
			s->was[d->old.places[i].common] = (uint32_t)i + 1;
	for (size_t i = 0; i < d->pair_count; i++)
		most = d->pairs[i].finding > most ? d->pairs[i].finding : most;
	s->shown = need_new((most + 1) * sizeof(*s->shown));
	for (size_t i = 0; i < d->count; i++)
		if (d->findings[i].kind != DIFF_MOVED && d->findings[i].id <= most)
			s->shown[d->findings[i].id] = (uint32_t)i + 1;
}

/* The child of `caller` with that key; a new one is appended. */
static uint32_t child(struct stacks_page *s, uint32_t caller, uint64_t key)
{
	uint64_t id = map_hash(caller, &key, sizeof(key));
	const uint32_t *known = map_get(&s->node_ids, id);

	if (known)
		return *known;
	if (s->node_count >= s->node_limit) {
		s->left_out++;
		return caller;
	}
	*map_put(&s->node_ids, id, NULL) = s->node_count;
	*need_item(s->nodes, s->node_count, s->node_room) = (struct node){ .caller = caller };
	return s->node_count - 1;
}

static uint32_t line_node(struct stacks_page *s, uint32_t caller, const struct diff_side *side,
			  uint32_t place)
{
	const struct diff *d = s->diff;
	const struct diff_place *p = &side->places[place];
	const struct diff_function *f = &side->functions[p->function];
	uint32_t partner = side == &d->new ? s->was[place] : 0;
	size_t known = s->node_count;
	uint32_t at = child(s, caller, 2 * (uint64_t)p->common);
	struct node *n = &s->nodes[at];

	if (at < known)
		return at;
	n->function = names_word(&s->page->names, f->name);
	n->file = names_path(&s->page->names, f->file);
	n->line = side == &d->new ? p->line : 0;
	n->was = side != &d->new ? p->line : partner ? d->old.places[partner - 1].line : 0;
	return at;
}

/* The node of the innermost line's call, or of the owner if there are no lines. */
static uint32_t call_node(struct stacks_page *s, uint32_t caller, const struct diff_site *site)
{
	const char *name = site->depth ? site->op : site->owner.function;
	size_t known = s->node_count;
	uint32_t at;

	if (!name[0] && site->depth)
		return caller;
	at = child(s, caller, map_hash_text(0, name) | 1);
	if (at == known) {
		s->nodes[at].function = names_word(&s->page->names, name[0] ? name : "(no stack)");
		s->nodes[at].file = names_word(&s->page->names, "");
		s->nodes[at].backward = !site->depth && site->owner.backward;
	}
	return at;
}

static uint32_t path_node(struct stacks_page *s, const struct diff_side *side,
			  const struct diff_site *site)
{
	uint32_t at = 0;

	for (unsigned i = 0; i < site->depth; i++)
		at = line_node(s, at, side, site->places[i]);
	return call_node(s, at, site);
}

/* Beyond the limit bytes are added to the root, so that sums stay right. */
static struct weight *weight_of(struct stacks_page *s, struct weights *all, uint32_t node,
				unsigned category, uint32_t finding)
{
	uint64_t key = ((uint64_t)node << 16 | category) << 16 | finding;
	uint32_t *at = map_get(&all->ids, key);

	if (at)
		return &all->rows[*at];
	if (all->count >= all->limit && (node || finding)) {
		s->left_out++;
		return weight_of(s, all, 0, category, 0);
	}
	*map_put(&all->ids, key, NULL) = all->count;
	*need_item(all->rows, all->count, all->room) =
		(struct weight){ .node = node, .finding = finding, .category = category };
	return &all->rows[all->count - 1];
}

/* The finding on the page that a pair belongs to. */
static uint32_t finding_of(const struct stacks_page *s, const struct diff_pair *pair)
{
	uint32_t at = pair->finding ? s->shown[pair->finding] : 0;

	return at <= DIFF_PAGE_FINDINGS ? at : 0;
}

/* At its own peak a side has its own paths, which are in no finding. */
static void add_shot(struct stacks_page *s, struct weights *all, bool new, bool peak)
{
	const struct diff *d = s->diff;
	const struct diff_side *side = new ? &d->new : &d->old;
	const struct diff_shot *shot = peak ? &side->at_peak : &side->shot;

	FOR_EACH (const struct diff_row, row, shot->rows, shot->count) {
		const struct diff_pair *pair = peak ? NULL : &d->pairs[row->pair - 1];
		bool follows = !new &&pair && pair->new_site;
		uint32_t node = path_node(s, follows ? &d->new : side,
					  follows ? pair->new_site : &side->sites[row->site]);
		struct weight *w =
			weight_of(s, all, node, row->category, pair ? finding_of(s, pair) : 0);

		w->bytes[new] += row->bytes;
		w->blocks[new] += row->blocks;
	}
}

static void emit_nodes(const struct stacks_page *s)
{
	struct bytes nodes = { 0 };

	for (size_t i = 1; i < s->node_count; i++) {
		const struct node *n = &s->nodes[i];

		column_row(&nodes, i - n->caller, n->function, n->file, n->line, n->was,
			   n->backward);
	}
	column_emit(&nodes, s->page->out, "paths");
}

static void emit_weights(const struct stacks_page *s, struct weights *all, const char *key)
{
	struct bytes rows = { 0 };

	FOR_EACH (const struct weight, w, all->rows, all->count)
		column_row(&rows, w->node, w->category, w->finding, w->bytes[0], w->blocks[0],
			   w->bytes[1], w->blocks[1]);
	column_emit(&rows, s->page->out, key);
	free(all->rows);
	map_free(&all->ids);
}

void diff_stacks_emit(struct page *p, const struct diff *d)
{
	struct stacks_page s = { .page = p, .diff = d, .node_limit = NODES * p->scale };
	struct weights compared = { .limit = ROWS * p->scale };
	struct weights peaks = { .limit = ROWS * p->scale };

	find_partners(&s);
	*need_item(s.nodes, s.node_count, s.node_room) = (struct node){ 0 };
	add_shot(&s, &compared, true, false);
	add_shot(&s, &compared, false, false);
	if (d->old.shot.seq != d->old.at_peak.seq || d->new.shot.seq != d->new.at_peak.seq) {
		add_shot(&s, &peaks, true, true);
		add_shot(&s, &peaks, false, true);
	}
	emit_nodes(&s);
	emit_weights(&s, &compared, "weights");
	emit_weights(&s, &peaks, "peak_weights");
	emit_number(p->out, "weights_left_out", s.left_out);
	free(s.was);
	free(s.shown);
	free(s.nodes);
	map_free(&s.node_ids);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* A comparison as a document, which is printed as JSON, text or Markdown. */
#include "diff_document.h"

#include "../base/sorted.h"

/* Bytes alive at the compared moments by module and by line, the greatest change first. */

/* Equal changes are ordered by name for modules, and by first pair for lines. */
COMPARE(by_change, struct diff_group,
	ORDER(diff_apart(y->bytes_old, y->bytes_new), diff_apart(x->bytes_old, x->bytes_new)) ?:
	strcmp(x->module, y->module) ?: ORDER(x->order, y->order))

/* The key of a class and line, independent of the callers. */
static uint64_t line_key(const struct diff *d, const struct diff_pair *p,
			 const struct diff_site *site)
{
	const struct diff_side *side = site == p->new_site ? &d->new : &d->old;
	const struct diff_place *inner = diff_innermost(side, site);
	unsigned category = d->no_classes ? 0 : p->category;
	uint64_t h = map_hash(inner != NULL, &category, sizeof(category));

	return inner ? map_hash(h, &inner->common, sizeof(inner->common))
		     : map_hash_text(h, site->owner.function);
}

/* The groups so far, and an index by key. */
struct grouping {
	struct diff_groups out;
	struct map known;
	enum diff_by by;
};

static struct diff_group *group_of(struct grouping *g, const struct diff *d,
				   const struct diff_pair *p, const struct diff_site *site)
{
	const char *module = g->by == DIFF_BY_MODULE ? site->module : "";
	uint64_t key = g->by == DIFF_BY_MODULE ? map_hash_text(0, module) : line_key(d, p, site);
	uint32_t at;

	if (g->by == DIFF_BY_MODULE && !module[0])
		return NULL;
	at = map_number(&g->known, key, g->out.count);
	if (at == g->out.count)
		*need_item(g->out.items, g->out.count, g->out.room) = (struct diff_group){
			.module = module, .category = p->category, .order = at
		};
	return &g->out.items[at];
}

/* Adds each side's bytes to the group of that side's path. */
static void add_pair(struct grouping *g, const struct diff *d, const struct diff_pair *p)
{
	struct diff_group *x = p->new_site ? group_of(g, d, p, p->new_site) : NULL;

	if (x) {
		x->new_site = x->new_site ? x->new_site : p->new_site;
		x->bytes_new += p->bytes_new;
		x->blocks_new += p->blocks_new;
	}
	x = p->old_site ? group_of(g, d, p, p->old_site) : NULL;
	if (x) {
		x->old_site = x->old_site ? x->old_site : p->old_site;
		x->bytes_old += p->bytes_old;
		x->blocks_old += p->blocks_old;
	}
}

struct diff_groups diff_group(const struct diff *d, enum diff_by by)
{
	struct grouping g = { .by = by };

	for (size_t i = 0; i < d->pair_count; i++)
		add_pair(&g, d, &d->pairs[i]);
	map_free(&g.known);
	SORT(g.out.items, g.out.count, by_change);
	return g.out;
}

void diff_groups_free(struct diff_groups *g)
{
	free(g->items);
}

static struct defs_text command(const struct diff_side *s)
{
	struct defs_text argv = defs_meta(&s->recording.defs, "argv");
	const char *from = argv.len ? owners_base(argv.s) : argv.s;

	return argv_line(from, (size_t)(argv.s + argv.len - from));
}

static struct row_diff_side side_row(const struct diff_side *s)
{
	const struct diff_shot *shot = &s->shot;
	const struct defs *defs = &s->recording.defs;

	return (struct row_diff_side){ .file = s->recording.path,
				       .commit = defs_meta(defs, "git.commit"),
				       .branch = defs_meta(defs, "git.branch"),
				       .command = command(s),
				       .device = s->timeline.device,
				       .steps = steps_number(&s->timeline.steps),
				       .peak_bytes = s->peak,
				       .compared = { .time_ns = shot->time_ns,
						     .step = shot->step,
						     .phase = phases[shot->phase].name,
						     .bytes = shot->total } };
}

/* The three members for a change of bytes. */
#define BYTES(before, after) \
	.bytes_old = (before), .bytes_new = (after), .delta = (int64_t)((after) - (before))

static bool part_row(void *ctx, size_t i, struct row_diff_part *row)
{
	const struct diff_document *doc = ctx;
	const struct diff_pair *p = &doc->diff->pairs[i];

	if (p->finding != doc->finding->id)
		return false;
	*row = (struct row_diff_part){ .class = p->category,
				       .owner = *diff_owner(p),
				       .module = diff_site_of(p)->module,
				       BYTES(p->bytes_old, p->bytes_new),
				       .blocks_old = p->blocks_old,
				       .blocks_new = p->blocks_new };
	return true;
}

static bool finding_row(void *ctx, size_t i, struct row_diff_finding *row)
{
	struct diff_document *doc = ctx;
	const struct diff_finding *f = doc->finding = &doc->diff->findings[i];
	size_t parts = f->kind == DIFF_MOVED ? 0 : doc->diff->pair_count;

	*row = (struct row_diff_finding){ .kind = diff_kind_name(f->kind),
					  .class = f->category,
					  .owner = f->owner,
					  BYTES(f->bytes_old, f->bytes_new),
					  .text = f->text,
					  .cause = diff_cause_name(f->cause),
					  .parts = { parts, part_row, doc } };
	return true;
}

static bool diff_class_row(void *ctx, size_t c, struct row_diff_class *row)
{
	const struct diff_document *doc = ctx;
	uint64_t before = doc->diff->old.at_peak.bytes[c], after = doc->diff->new.at_peak.bytes[c];

	*row = (struct row_diff_class){ .class = (unsigned)c, BYTES(before, after) };
	return before || after;
}

static bool phase_row(void *ctx, size_t p, struct row_diff_phase *row)
{
	const struct diff_document *doc = ctx;
	const struct span *old = diff_highest(&doc->diff->old, (int)p);
	const struct span *new = diff_highest(&doc->diff->new, (int)p);
	uint64_t before = old ? old->extent.peak : 0, after = new ? new->extent.peak : 0;

	*row = (struct row_diff_phase){ .phase = phases[p].name,
					BYTES(before, after),
					.words = diff_has_phases(doc->diff) ? phases[p].text
									    : "the whole run" };
	return old || new;
}

static bool module_row(void *ctx, size_t i, struct row_diff_module *row)
{
	const struct diff_document *doc = ctx;
	const struct diff_group *m = &doc->modules.items[i];

	*row = (struct row_diff_module){ .module = m->module, BYTES(m->bytes_old, m->bytes_new) };
	return m->bytes_old != m->bytes_new;
}

/* "model.py:12 activations", for text; no class where they cannot be compared. */
static const char *line_words(char *buf, size_t room, const struct owner *o, const char *class)
{
	size_t left = DIFF_NAME - 1 - strlen(class);
	char who[OWNER_WORDS];

	if (o->file[0])
		owner_place(o, who, sizeof(who), left);
	else
		words_within(o->function[0] ? o->function : "(no stack)", who, sizeof(who), left);
	snprintf(buf, room, "%s%s%s", who, *class ? " " : "", class);
	return buf;
}

static bool diff_line_row(void *ctx, size_t i, struct row_diff_line *row)
{
	struct diff_document *doc = ctx;
	const struct diff_group *x = &doc->lines.items[i];
	const struct owner *o = x->new_site ? &x->new_site->owner : &x->old_site->owner;

	*row = (struct row_diff_line){
		.class = x->category,
		.owner = *o,
		BYTES(x->bytes_old, x->bytes_new),
		.blocks_old = x->blocks_old,
		.blocks_new = x->blocks_new,
		.words = line_words(doc->words, sizeof(doc->words), o,
				    doc->diff->no_classes ? "" : categories[x->category].words)
	};
	return x->bytes_old != x->bytes_new;
}

static bool besides_row(void *ctx, size_t i, struct row_diff_besides *row)
{
	const struct diff_ground *g = &((const struct diff_document *)ctx)->grounds[i];

	*row = (struct row_diff_besides){ .what = g->what, .old = g->old, .new = g->new };
	return true;
}

void diff_document(struct diff_document *doc, const struct diff *d)
{
	*doc = (struct diff_document){ .diff = d,
				       .modules = diff_group(d, DIFF_BY_MODULE),
				       .lines = diff_group(d, DIFF_BY_LINE) };
	doc->row = (struct row_diff){
		.peak_old = d->old.peak,
		.peak_new = d->new.peak,
		.delta = (int64_t)(d->new.peak - d->old.peak),
		.reserved_old = d->old.reserved.bytes,
		.reserved_new = d->new.reserved.bytes,
		.peak_phase_old = phases[diff_phase_at(&d->old, d->old.peak_seq)].name,
		.peak_phase_new = phases[diff_phase_at(&d->new, d->new.peak_seq)].name,
		.old = side_row(&d->old),
		.new = side_row(&d->new),
		.besides = { diff_grounds(d, doc->grounds), besides_row, doc },
		.not_compared = diff_not_compared(d, doc->not_compared, sizeof(doc->not_compared)),
		.findings = { d->count, finding_row, doc },
		.classes = { CATEGORIES, diff_class_row, doc },
		.phases = { PHASES, phase_row, doc },
		.modules = { d->no_lines ? 0 : doc->modules.count, module_row, doc },
		.lines = { d->no_lines ? 0 : doc->lines.count, diff_line_row, doc },
	};
}

void diff_document_free(struct diff_document *doc)
{
	diff_groups_free(&doc->modules);
	diff_groups_free(&doc->lines);
	free((char *)doc->row.old.command.s);
	free((char *)doc->row.new.command.s);
}

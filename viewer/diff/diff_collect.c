/* SPDX-License-Identifier: Apache-2.0 */
/* Combines pairs that differ into one finding, which is named after one of them. */
#include "diff.h"

int64_t diff_delta(const struct diff_pair *p)
{
	return (int64_t)(p->bytes_new - p->bytes_old);
}

uint64_t diff_size(const struct diff_pair *p)
{
	return (uint64_t)(diff_delta(p) < 0 ? -diff_delta(p) : diff_delta(p));
}

const struct diff_site *diff_site_of(const struct diff_pair *p)
{
	return p->new_site ? p->new_site : p->old_site;
}

const struct owner *diff_owner(const struct diff_pair *p)
{
	return &diff_site_of(p)->owner;
}

/* The common numbers of a pair's function and line on one side; false: it has none there. */
static bool place_on(const struct diff *d, const struct diff_pair *p, bool new, uint32_t at[2])
{
	const struct diff_side *s = new ? &d->new : &d->old;
	const struct diff_site *site = new ? p->new_site : p->old_site;
	const struct diff_place *line = site ? diff_innermost(s, site) : NULL;

	if (!line)
		return false;
	at[0] = s->functions[line->function].common;
	at[1] = line->common;
	return true;
}

bool diff_same_place(const struct diff *d, const struct diff_pair *a, const struct diff_pair *b,
		     bool line)
{
	uint32_t x[2], y[2];

	for (unsigned i = 0; i < 4; i++)
		if (place_on(d, a, i & 1, x) && place_on(d, b, i & 2, y) && x[line] == y[line])
			return true;
	return false;
}

bool diff_differs(const struct diff_pair *p)
{
	return !p->finding && !p->remainders && p->bytes_old != p->bytes_new;
}

static enum diff_kind kind_of(const struct diff_finding *f)
{
	if (!f->bytes_old)
		return DIFF_NEW;
	if (!f->bytes_new)
		return DIFF_GONE;
	return f->bytes_new > f->bytes_old ? DIFF_GROWN : DIFF_SHRUNK;
}

struct diff_finding *diff_new_finding(struct diff *d, enum diff_cause cause)
{
	uint32_t id = (uint32_t)d->count + 1;

	*need_item(d->findings, d->count, d->room) =
		(struct diff_finding){ .cause = cause, .id = id };
	return &d->findings[id - 1];
}

void diff_add_pair(struct diff_finding *f, struct diff_pair *p)
{
	p->finding = f->id;
	f->bytes_old += p->bytes_old;
	f->bytes_new += p->bytes_new;
	f->blocks_old += p->blocks_old;
	f->blocks_new += p->blocks_new;
}

/* The pair that the finding is named after: of the classes that can name it, the one with the
 * greatest change, and of that the pair with the greatest change. */
static size_t naming_pair(const struct diff *d, uint32_t finding, uint32_t named_by)
{
	int64_t by_class[CATEGORIES] = { 0 }, most = -1;
	uint32_t may = 0; /* classes of its pairs, even if their changes cancel out */
	const struct diff_pair *best;
	unsigned class = 0;

	for (size_t i = 0; i < d->pair_count; i++)
		if (d->pairs[i].finding == finding) {
			by_class[d->pairs[i].category] += diff_delta(&d->pairs[i]);
			may |= 1u << d->pairs[i].category;
		}
	may &= named_by ? named_by : may;
	for (unsigned c = 0; c < CATEGORIES; c++)
		if (llabs(by_class[c]) > most && may & 1u << c) {
			most = llabs(by_class[c]);
			class = c;
		}
	best = GREATEST_OF(p, d->pairs, d->pair_count,
			   p->finding == finding && p->category == class, diff_size(p));
	return best ? (size_t)(best - d->pairs) : SIZE_MAX;
}

static void name_finding(const struct diff *d, struct diff_finding *f, const struct diff_rule *rule)
{
	bool line = rule->line && rule->line->file[0];

	f->pair = naming_pair(d, f->id, rule->named_by);
	if (f->pair == SIZE_MAX)
		f->pair = naming_pair(d, f->id, 0);
	f->category = d->pairs[f->pair].category;
	f->owner = *diff_owner(&d->pairs[f->pair]);
	f->kind = kind_of(f);
	if (line && !(rule->line_if_none && f->owner.file[0]))
		f->owner = *rule->line;
}

static bool takes(const struct diff *d, const struct diff_rule *rule, const struct diff_pair *p)
{
	return diff_differs(p) && diff_delta(p) * rule->direction >= 0 &&
	       (!rule->classes || (1u << p->category & rule->classes)) &&
	       (!rule->takes || rule->takes(d, p, rule->facts));
}

void diff_collect(struct diff *d, const struct diff_rule *rule)
{
	struct diff_finding *f = NULL;

	FOR_EACH (struct diff_pair, p, d->pairs, d->pair_count) {
		if (!takes(d, rule, p))
			continue;
		f = f ? f : diff_new_finding(d, rule->cause);
		diff_add_pair(f, p);
	}
	if (!f)
		return;
	f->factor = rule->factor;
	f->count = rule->count;
	f->square = rule->square;
	name_finding(d, f, rule);
}

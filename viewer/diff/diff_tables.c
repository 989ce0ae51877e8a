/* SPDX-License-Identifier: Apache-2.0 */
/* What all faces of a comparison need: names, changes as words, tables by module and by line. */
#include <stdlib.h>
#include <string.h>

#include "../base/human.h"
#include "../base/need.h"
#include "diff.h"

const char *diff_kind_name(enum diff_kind kind)
{
	static const char *const names[] = { "grown", "shrunk", "new", "gone", "moved" };

	return names[kind];
}

const char *diff_cause_name(enum diff_cause cause)
{
	static const char *const names[] = {
		[CAUSE_LINE] = "line",		 [CAUSE_FUNCTION] = "function",
		[CAUSE_KEPT] = "kept",		 [CAUSE_PRECISION] = "precision",
		[CAUSE_SCALE] = "scale",	 [CAUSE_MODEL] = "model",
		[CAUSE_OPTIMIZER] = "optimizer", [CAUSE_GRADIENTS] = "gradients",
		[CAUSE_RECOMPUTE] = "recompute", [CAUSE_PEAK] = "peak",
	};

	return names[cause];
}

const char *diff_change(char buf[48], uint64_t before, uint64_t after)
{
	char b[HUMAN_MAX];

	if (before == after)
		return "0";
	human_bytes(b, before < after ? after - before : before - after);
	snprintf(buf, 48, "%c%s", before < after ? '+' : '-', b);
	return buf;
}

const char *diff_percent(char buf[48], uint64_t before, uint64_t after)
{
	if (!before || before == after)
		return "";
	snprintf(buf, 48, "%+.1f %%", 100 * ((double)after - (double)before) / (double)before);
	return buf;
}

/* argv as recorded: each argument ends with a zero. */
const char *diff_command(const struct diff_side *s, char *buf, size_t room)
{
	struct defs_text argv = defs_meta(&s->recording.defs, "argv");
	const char *p = argv.len ? owners_base(argv.s) : "";
	size_t len = 0;

	for (; argv.len && p < argv.s + argv.len && len < room - 1; p++)
		buf[len++] = *p ? *p : ' ';
	while (len && buf[len - 1] == ' ')
		len--;
	buf[len] = 0;
	return buf;
}

const char *diff_commit(const struct diff_side *s, char *buf, size_t room)
{
	struct defs_text commit = defs_meta(&s->recording.defs, "git.commit");

	snprintf(buf, room, commit.len ? "commit %.7s" : "no commit", commit.s);
	return buf;
}

static uint64_t apart(uint64_t a, uint64_t b)
{
	return a < b ? b - a : a - b;
}

static int by_change(const void *a, const void *b)
{
	const struct diff_module *x = a, *y = b;
	uint64_t v = apart(x->bytes_old, x->bytes_new), w = apart(y->bytes_old, y->bytes_new);

	if (v != w)
		return v < w ? 1 : -1;
	return strcmp(x->path, y->path);
}

static struct diff_module *module_of(struct diff_modules *m, const char *path)
{
	for (size_t i = 0; i < m->count; i++)
		if (!strcmp(m->items[i].path, path))
			return &m->items[i];
	m->items = need_grow(m->items, &m->room, m->count, sizeof(*m->items));
	m->items[m->count] = (struct diff_module){ .path = path };
	return &m->items[m->count++];
}

struct diff_modules diff_modules(const struct diff *d)
{
	struct diff_modules m = { 0 };
	size_t kept = 0;

	for (size_t i = 0; i < d->pair_count; i++) {
		const struct diff_pair *p = &d->pairs[i];
		const struct diff_site *site = p->new_site ? p->new_site : p->old_site;
		struct diff_module *at = site->module[0] ? module_of(&m, site->module) : NULL;

		if (!at)
			continue;
		at->bytes_old += p->bytes_old;
		at->bytes_new += p->bytes_new;
	}
	for (size_t i = 0; i < m.count; i++)
		if (m.items[i].bytes_old != m.items[i].bytes_new)
			m.items[kept++] = m.items[i];
	m.count = kept;
	if (kept)
		qsort(m.items, kept, sizeof(*m.items), by_change);
	return m;
}

void diff_modules_free(struct diff_modules *m)
{
	free(m->items);
}

static int by_delta(const void *a, const void *b, void *ctx)
{
	const struct diff *d = ctx;
	const struct diff_pair *x = &d->pairs[*(const size_t *)a];
	const struct diff_pair *y = &d->pairs[*(const size_t *)b];
	uint64_t v = apart(x->bytes_old, x->bytes_new), w = apart(y->bytes_old, y->bytes_new);

	if (v != w)
		return v < w ? 1 : -1;
	return x < y ? -1 : x > y;
}

size_t *diff_lines(const struct diff *d, size_t *count)
{
	size_t *all = need_new((d->pair_count + 1) * sizeof(*all));

	*count = 0;
	for (size_t i = 0; i < d->pair_count; i++)
		if (d->pairs[i].bytes_old != d->pairs[i].bytes_new)
			all[(*count)++] = i;
	qsort_r(all, *count, sizeof(*all), by_delta, (void *)(uintptr_t)d);
	return all;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* check: whether recordings keep within bounds, for tests and pull requests. */
#include <stdlib.h>
#include <string.h>

#include "../base/need.h"
#include "../base/outfile.h"
#include "bounds.h"
#include "check_reports.h"
#include "command.h"

struct check {
	struct bounds *all;
	size_t count, bounds, broken;
};

static int parse_class(const char *text, struct bounds_wanted *w)
{
	size_t len = strcspn(text, "=");
	char name[64];
	int c;

	snprintf(name, sizeof(name), "%.*s", (int)len, text);
	c = category_by_name(name);
	if (c < 0)
		return say_error(EXIT_USAGE, "--max-class \"%s\": %s is not one of: %s", text, name,
				 options_classes);
	if (!text[len])
		return say_error(EXIT_USAGE,
				 "--max-class \"%s\" needs a size: --max-class %s=20GiB", text,
				 name);
	w->classes[c].given = true;
	if (amount_parse(text + len + 1, &w->classes[c].amount) && !w->classes[c].amount.percent)
		return 0;
	return say_error(EXIT_USAGE, "--max-class needs a size such as 40GiB, not \"%s\"",
			 text + len + 1);
}

static int parse_bounds(const struct check_options *o, struct bounds_wanted *w)
{
	int rc = 0;

	*w = (struct bounds_wanted){ .peak = o->max_peak,
				     .reserved = o->max_reserved,
				     .growth = o->max_growth,
				     .baseline = o->baseline,
				     .baseline_above = o->fail_above,
				     .device = o->device };
	for (char **c = o->max_class; !rc && c && *c; c++)
		rc = parse_class(*c, w);
	if (!rc && o->fail_above.given && !o->baseline)
		rc = say_error(EXIT_USAGE, "--fail-above is for --baseline; give both");
	if (!rc && !w->peak.given && !w->reserved.given && !w->growth.given && !o->max_class &&
	    !o->baseline)
		rc = say_error(EXIT_USAGE,
			       "no bound was given; there are --max-peak, --max-reserved, "
			       "--max-growth, --max-class and --baseline");
	return rc;
}

static bool bound_row(void *ctx, size_t i, struct row_check_bound *row)
{
	const struct bound *b = &((const struct bounds *)ctx)->items[i];

	*row = (struct row_check_bound){ .name = b->name,
					 .has_class = b->category >= 0,
					 .class = b->category < 0 ? 0 : (unsigned)b->category,
					 .ok = b->ok,
					 .known = b->known,
					 .limit_bytes = b->limit,
					 .measured_bytes = b->measured,
					 .text = b->text,
					 .owner = b->owner };
	return true;
}

static bool recording_row(void *ctx, size_t i, struct row_check_recording *row)
{
	struct bounds *b = &((struct check *)ctx)->all[i];

	*row = (struct row_check_recording){ .file = b->file,
					     .ok = !b->broken,
					     .bounds = { b->count, bound_row, b } };
	return true;
}

static void print_bounds(struct emit *out, struct check *c)
{
	const struct row_check row = { .ok = !c->broken,
				       .bounds = c->bounds,
				       .broken = c->broken,
				       .recordings = { c->count, recording_row, c } };

	emit_document(out, check, &row);
	for (size_t i = 0; i < c->count; i++)
		for (size_t k = 0; k < c->all[i].count; k++)
			emit_line(out, "%-4s %s: %s", c->all[i].items[k].ok ? "ok" : "fail",
				  c->all[i].file, c->all[i].items[k].text);
}

/* The first bound that does not hold in one sentence. */
static int verdict(const struct check *c)
{
	char more[48] = "";

	for (size_t i = 0; i < c->count; i++)
		for (size_t k = 0; k < c->all[i].count; k++) {
			if (c->all[i].items[k].ok)
				continue;
			if (c->broken > 1)
				snprintf(more, sizeof(more), " (%zu of %zu bounds do not hold)",
					 c->broken, c->bounds);
			return say_error(EXIT_CHECK, "%s: %s%s", c->all[i].file,
					 c->all[i].items[k].text, more);
		}
	return EXIT_OK;
}

static int find_all(struct check *c, const struct check_options *o, const struct bounds_wanted *w)
{
	size_t n = need_count(o->files);
	int rc = 0;

	c->all = need_new((n + 1) * sizeof(*c->all));
	for (size_t i = 0; !rc && i < n; i++) {
		rc = bounds_find(&c->all[i], o->files[i], w);
		c->count = i + 1;
		c->bounds += c->all[i].count;
		c->broken += c->all[i].broken;
	}
	return rc;
}

static int write_reports(const struct check_options *o, const struct check *c, struct emit *out,
			 struct outfile *junit)
{
	if (o->annotations)
		check_annotations(out, c->all, c->count);
	if (!o->junit)
		return 0;
	check_junit(junit->f, c->all, c->count);
	return outfile_commit(junit);
}

int run_check(const struct check_options *o, struct emit *out)
{
	struct bounds_wanted wanted = { 0 };
	struct check c = { 0 };
	struct outfile junit;
	int rc = parse_bounds(o, &wanted);

	if (!rc && o->junit)
		rc = outfile_open(&junit, o->junit, "<?xml", "a report of tests");
	if (rc)
		return rc;
	rc = find_all(&c, o, &wanted);
	if (rc && o->junit)
		outfile_drop(&junit);
	if (!rc) {
		print_bounds(out, &c);
		rc = write_reports(o, &c, out, &junit);
	}
	if (!rc)
		rc = verdict(&c);
	for (size_t i = 0; i < c.count; i++)
		bounds_free(&c.all[i]);
	free(c.all);
	return rc;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* check: whether recordings keep within bounds, for tests and pull requests. */
#include "../base/emit.h"
#include "../base/emit_json.h"
#include "../base/outfile.h"
#include "../base/plain_file.h"
#include "bounds.h"
#include "command.h"

/* XML's own characters become entities; characters that XML cannot contain become '?'. */
static void put_xml(FILE *f, const char *s)
{
	static const char *const names[] = {
		['<'] = "&lt;", ['>'] = "&gt;", ['&'] = "&amp;", ['"'] = "&quot;"
	};
	size_t len = strlen(s), n;

	for (; len; s += n, len -= n) {
		unsigned char c = (unsigned char)*s;

		n = emit_plain_char(s, len);
		if (n && c < sizeof(names) / sizeof(names[0]) && names[c]) {
			fputs(names[c], f);
		} else if (n) {
			fwrite(s, 1, n, f);
		} else {
			fputc('?', f);
			n = emit_utf8(s, len);
			n = n ? n : 1;
		}
	}
}

static void put_attribute(FILE *f, const char *name, const char *value)
{
	fprintf(f, " %s=\"", name);
	put_xml(f, value);
	fputc('"', f);
}

/* "max-class activations" */
static const char *test_name(const struct row_check_bound *b, char *buf, size_t room)
{
	snprintf(buf, room, "%s%s%s", b->name, b->has_class ? " " : "",
		 b->has_class ? categories[b->class].name : "");
	return buf;
}

static void put_test(FILE *f, const char *file, const struct row_check_bound *b)
{
	char name[64];

	fputs("  <testcase", f);
	put_attribute(f, "classname", file);
	put_attribute(f, "name", test_name(b, name, sizeof(name)));
	if (b->ok) {
		fputs("/>\n", f);
		return;
	}
	fputs(">\n    <failure", f);
	put_attribute(f, "message", b->text);
	fputs("/>\n  </testcase>\n", f);
}

#define JUNIT_HEAD \
	"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"gpumemtrace check\""

/* JUnit's XML, one test for each limit. */
static void check_junit(FILE *f, const struct bounds *all, size_t count)
{
	size_t tests = 0, failures = 0;

	for (size_t i = 0; i < count; i++) {
		tests += all[i].count;
		failures += all[i].broken;
	}
	fprintf(f, JUNIT_HEAD " tests=\"%zu\" failures=\"%zu\">\n", tests, failures);
	for (size_t i = 0; i < count; i++)
		for (size_t k = 0; k < all[i].count; k++)
			put_test(f, all[i].file, &all[i].items[k]);
	fputs("</testsuite>\n", f);
}

/* In a property, a colon or a comma would end the value, so both are escaped. */
static void put_command_text(FILE *f, const char *s, bool property)
{
	char escape[EMIT_ESCAPE];
	size_t len = strlen(s), n;

	for (; len; s += n, len -= n) {
		n = emit_plain_char(s, len);
		if ((unsigned char)*s < ' ' || *s == '%' || (property && (*s == ':' || *s == ',')))
			n = (size_t)fprintf(f, "%%%02X", (unsigned char)*s) / 3;
		else if (n)
			fwrite(s, 1, n, f);
		else if ((n = emit_escape(escape, s, len)))
			fputs(escape, f);
	}
}

/* Path relative to the working directory; NULL if the file is elsewhere. */
static const char *in_tree(const char *file)
{
	const char *path = file_from_here(file);

	return *path && *path != '/' && !strchr(path, '<') ? path : NULL;
}

static void put_annotation(FILE *f, const char *recording, const struct row_check_bound *b)
{
	const char *file = in_tree(b->owner.file);
	char name[64];

	fputs("::error ", f);
	if (file) {
		fputs("file=", f);
		put_command_text(f, file, true);
		fprintf(f, ",line=%u,", b->owner.line);
	}
	fputs("title=gpumemtrace ", f);
	put_command_text(f, test_name(b, name, sizeof(name)), true);
	fputs("::", f);
	put_command_text(f, recording, false);
	fputs(": ", f);
	put_command_text(f, b->text, false);
	fputc('\n', f);
}

/* GitHub's workflow commands, which Forgejo and Gitea know too: an ::error line for each failed
 * limit. It names the line of code that holds most, if its file is below the working directory. */
static void check_annotations(struct emit *out, const struct bounds *all, size_t count)
{
	char *text;
	size_t len;
	FILE *f = need_stream(&text, &len);

	for (size_t i = 0; i < count; i++)
		for (size_t k = 0; k < all[i].count; k++)
			if (!all[i].items[k].ok)
				put_annotation(f, all[i].file, &all[i].items[k]);
	fclose(f);
	emit_raw(out, "%s", text);
	free(text);
}

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
		return say_usage("--max-class \"%s\": %s is not one of: %s", text, name,
				 options_classes);
	if (!text[len])
		return say_usage("--max-class \"%s\" needs a size: --max-class %s=20GiB", text,
				 name);
	w->classes[c].given = true;
	w->classes[c].text = text + len + 1;
	if (amount_parse(text + len + 1, &w->classes[c].amount) && !w->classes[c].amount.percent)
		return 0;
	return say_usage("--max-class needs a size such as 40GiB, not \"%s\"", text + len + 1);
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
		rc = say_usage("--fail-above is for --baseline; give both");
	if (!rc && !w->peak.given && !w->reserved.given && !w->growth.given && !o->max_class &&
	    !o->baseline)
		rc = say_usage("no bound was given; there are --max-peak, --max-reserved, "
			       "--max-growth, --max-class and --baseline");
	return rc;
}

static bool recording_row(void *ctx, size_t i, struct row_check_recording *row)
{
	struct bounds *b = &((struct check *)ctx)->all[i];

	*row = (struct row_check_recording){ .file = b->file,
					     .ok = !b->broken,
					     .bounds = { b->count, NULL, b->items } };
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

static const struct row_check_bound *first_broken(const struct check *c, const char **file)
{
	for (size_t i = 0; i < c->count; i++)
		for (size_t k = 0; k < c->all[i].count; k++)
			if (!c->all[i].items[k].ok) {
				*file = c->all[i].file;
				return &c->all[i].items[k];
			}
	return NULL;
}

/* Prints how many limits failed, with --json also the first of them. Returns the exit code. */
static int verdict(const struct check *c, bool json)
{
	const char *file = "";
	const struct row_check_bound *b = first_broken(c, &file);
	char count[64];

	if (!b)
		return EXIT_OK;
	snprintf(count, sizeof(count), "%zu of %s failed", c->broken, MANY(c->bounds, "limit"));
	if (!json)
		return say_error(EXIT_CHECK, "%s", count);
	return say_error(EXIT_CHECK, "%s: %s%s%s%s", file, b->text, c->broken > 1 ? " (" : "",
			 c->broken > 1 ? count : "", c->broken > 1 ? ")" : "");
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
		rc = outfile_open(&junit, o->junit, JUNIT_HEAD, "a report of this command");
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
		rc = verdict(&c, emit_json(out));
	for (size_t i = 0; i < c.count; i++)
		bounds_free(&c.all[i]);
	free(c.all);
	return rc;
}

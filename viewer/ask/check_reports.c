/* SPDX-License-Identifier: Apache-2.0 */
#include "check_reports.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../base/emit_json.h"
#include "../base/need.h"

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
static const char *test_name(const struct bound *b, char *buf, size_t room)
{
	snprintf(buf, room, "%s%s%s", b->name, b->category < 0 ? "" : " ",
		 b->category < 0 ? "" : category_name((unsigned)b->category));
	return buf;
}

static void put_test(FILE *f, const char *file, const struct bound *b)
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

void check_junit(FILE *f, const struct bounds *all, size_t count)
{
	size_t tests = 0, failures = 0;

	for (size_t i = 0; i < count; i++) {
		tests += all[i].count;
		failures += all[i].broken;
	}
	fprintf(f,
		"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
		"<testsuite name=\"gpumemtrace check\" tests=\"%zu\" failures=\"%zu\">\n",
		tests, failures);
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
	char here[PATH_MAX];
	size_t n;

	if (*file != '/')
		return *file && !strchr(file, '<') ? file : NULL;
	if (!getcwd(here, sizeof(here)))
		return NULL;
	n = strlen(here);
	return !strncmp(file, here, n) && file[n] == '/' ? file + n + 1 : NULL;
}

static void put_annotation(FILE *f, const char *recording, const struct bound *b)
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

void check_annotations(struct emit *out, const struct bounds *all, size_t count)
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

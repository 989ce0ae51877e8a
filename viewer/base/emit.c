/* SPDX-License-Identifier: Apache-2.0 */
#include "emit.h"

#include "emit_json.h"
#include "machine.h"

#define LABEL 18 /* columns of a key in text */

struct emit {
	FILE *f;
	bool json, bold, markdown;
	char *close; /* closing bracket of each open object or array */
	size_t depth, room;
	bool first; /* nothing printed yet in the innermost one */
};

struct emit *emit_open(FILE *f, bool json)
{
	struct emit *e = need_new(sizeof(*e));
	const char *no = machine_setting("NO_COLOR");

	e->f = f;
	e->json = json;
	e->bold = !json && machine_moves(f) && !(no && *no);
	e->first = true;
	return e;
}

struct emit *emit_like(const struct emit *e, FILE *f)
{
	struct emit *other = emit_open(f, e->json);

	other->bold = e->bold;
	return other;
}

int emit_close(struct emit *e)
{
	int rc;

	while (e->depth)
		emit_end(e);
	rc = ferror(e->f) | fflush(e->f);
	free(e->close);
	free(e);
	return rc;
}

bool emit_json(const struct emit *e)
{
	return e->json;
}

static void member(struct emit *e, const char *key)
{
	if (!e->first)
		fputc(',', e->f);
	e->first = false;
	if (key) {
		emit_json_string(e->f, key, strlen(key));
		fputc(':', e->f);
	}
}

static void open_level(struct emit *e, const char *key, const char *pair)
{
	if (!e->json)
		return;
	member(e, key);
	fputc(pair[0], e->f);
	*need_item(e->close, e->depth, e->room) = pair[1];
	e->first = true;
}

void emit_object(struct emit *e, const char *key)
{
	open_level(e, key, "{}");
}

void emit_array(struct emit *e, const char *key)
{
	open_level(e, key, "[]");
}

void emit_end(struct emit *e)
{
	if (!e->depth)
		return;
	fputc(e->close[--e->depth], e->f);
	e->first = !e->depth;
	if (!e->depth) /* the document is complete; another may follow */
		fputc('\n', e->f);
}

void emit_members(struct emit *e, const char *s, size_t len)
{
	if (!e->json || len <= 2)
		return;
	member(e, NULL);
	fwrite(s + 1, 1, len - 2, e->f);
}

/* Text: the key, padded. JSON: the key. */
static void label(struct emit *e, const char *key)
{
	size_t len;

	if (e->json) {
		member(e, key);
		return;
	}
	len = strlen(key);
	fprintf(e->f, "%s%*s", key, len < LABEL ? (int)(LABEL - len) : 1, "");
}

static void finish(struct emit *e)
{
	if (!e->json)
		fputc('\n', e->f);
}

void emit_number(struct emit *e, const char *key, uint64_t n)
{
	label(e, key);
	fprintf(e->f, "%" PRIu64, n);
	finish(e);
}

void emit_null(struct emit *e, const char *key)
{
	if (!e->json)
		return;
	member(e, key);
	fputs("null", e->f);
}

void emit_signed(struct emit *e, const char *key, int64_t n)
{
	label(e, key);
	fprintf(e->f, "%" PRId64, n);
	finish(e);
}

void emit_decimal(struct emit *e, const char *key, double n)
{
	label(e, key);
	fprintf(e->f, "%.10g", n);
	finish(e);
}

void emit_flag(struct emit *e, const char *key, bool b)
{
	label(e, key);
	fputs(e->json ? (b ? "true" : "false") : (b ? "yes" : "no"), e->f);
	finish(e);
}

void emit_bytes(struct emit *e, const char *key, const char *s, size_t len)
{
	label(e, key);
	if (e->json)
		emit_json_string(e->f, s, len);
	else
		emit_plain_string(e->f, s, len);
	finish(e);
}

void emit_text(struct emit *e, const char *key, const char *s)
{
	emit_bytes(e, key, s, strlen(s));
}

void emit_use_markdown(struct emit *e)
{
	e->markdown = true;
	e->bold = false;
}

bool emit_is_markdown(const struct emit *e)
{
	return e->markdown;
}

bool emit_colour(const struct emit *e)
{
	return e->bold;
}

/* Prints a line of text between `before` and `behind`, which are not escaped. */
static void print_line(struct emit *e, const char *before, const char *format, va_list args,
		       const char *behind)
{
	char *text;
	int len = e->json ? -1 : vasprintf(&text, format, args);

	if (len < 0)
		return;
	while (len && text[len - 1] == ' ')
		text[--len] = 0;
	fputs(before, e->f);
	if (e->markdown)
		emit_escaped(e, text);
	else
		emit_plain_string(e->f, text, (size_t)len);
	fputs(behind, e->f);
	free(text);
}

void emit_line(struct emit *e, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	print_line(e, "", format, args, "\n");
	va_end(args);
}

void emit_raw(struct emit *e, const char *format, ...)
{
	va_list args;

	if (e->json)
		return;
	va_start(args, format);
	vfprintf(e->f, format, args);
	va_end(args);
}

void emit_title(struct emit *e, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	print_line(e,
		   e->markdown ? "### "
		   : e->bold   ? "\033[1m"
			       : "",
		   format, args, e->bold ? "\033[0m\n" : "\n");
	va_end(args);
}

size_t emit_screen(void)
{
	static unsigned columns;
	static bool asked, is;

	if (!asked)
		is = machine_terminal(NULL, &columns, NULL);
	asked = true;
	return !is ? 0 : columns ? columns : 80;
}

static size_t paragraph_width(size_t lead)
{
	size_t screen = emit_screen(), width = screen && screen < 80 ? screen - 1 : PARAGRAPH;

	return width > lead + 20 ? width - lead : 20;
}

void emit_paragraph(struct emit *out, const char *first, const char *next, const char *text)
{
	const char *lead = first;

	while (*text) {
		size_t room = paragraph_width(strlen(lead)), len = strlen(text);

		if (len > room) {
			for (len = room; len && text[len] != ' '; len--)
				;
			len = len ? len : strcspn(text, " ");
		}
		emit_line(out, "%s%.*s", lead, (int)len, text);
		text += len;
		while (*text == ' ')
			text++;
		lead = next;
	}
}

void emit_sentence(struct emit *out, const char *next, const char *format, ...)
{
	char *text;
	va_list args;
	int len;

	va_start(args, format);
	len = out->json ? -1 : vasprintf(&text, format, args);
	va_end(args);
	if (len < 0)
		return;
	emit_paragraph(out, "", next, text);
	free(text);
}

/* Whether the character at `at` ends an arrow (" ->"), which is not markup. */
static bool is_arrow(const char *text, const char *at)
{
	return *at == '>' && at - text > 1 && at[-1] == '-' && at[-2] == ' ';
}

void emit_escaped(struct emit *e, const char *text)
{
	const char *start = text;
	char escape[EMIT_ESCAPE];

	for (size_t left = strlen(text), n; left; text += n, left -= n) {
		n = emit_plain_char(text, left);
		if (strchr("<>&@", *text) && !is_arrow(start, text))
			emit_raw(e, "&#%u;", (unsigned)*text);
		else if (strchr("\\`*_{}[]#|~$!", *text))
			emit_raw(e, "\\%c", *text);
		else if (n)
			emit_raw(e, "%.*s", (int)n, text);
		else if (strchr("\t\n\v\f\r", *text))
			emit_raw(e, "%.*s", (int)(n = 1), " ");
		else if ((n = emit_escape(escape, text, left)))
			emit_raw(e, "\\%s", escape);
	}
}

void emit_item(struct emit *e, size_t number, const char *text)
{
	char lead[24];

	snprintf(lead, sizeof(lead), "%2zu. ", number);
	if (!e->markdown) {
		emit_paragraph(e, lead, "    ", text);
		return;
	}
	emit_raw(e, "%zu. ", number);
	emit_line(e, "%s", text);
}

void emit_point(struct emit *e, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	print_line(e, e->markdown ? "- " : "", format, args, "\n");
	va_end(args);
}

void emit_fold(struct emit *e, const char *title)
{
	emit_raw(e, e->markdown ? "\n<details><summary>%s</summary>\n" : "", title);
}

void emit_fold_end(struct emit *e)
{
	emit_raw(e, "%s", e->markdown ? "\n</details>\n" : "");
}

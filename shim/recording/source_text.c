/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A statement is the line that the interpreter names, and the lines after it as long as a bracket
 * is open or a backslash ends the line. Strings and comments are recognized as far as this needs.
 * No state; the drain's thread.
 */
#include "source_text.h"

#include <stdbool.h>
#include <string.h>

#define LINES_MOST 20

struct text {
	char *out;
	size_t n, room;
	bool blank;  /* one is due before the next byte */
	bool joined; /* the next byte is the first of a further line */
	int *cut;
};

static void put(struct text *t, char c)
{
	if (c == ' ' || c == '\t') {
		t->blank = t->n > 0;
		return;
	}
	if (t->joined && t->n && (strchr("([{", t->out[t->n - 1]) || strchr(")]}", c)))
		t->blank = false;
	t->joined = false;
	if (t->n + t->blank + 1 > t->room) {
		*t->cut = 1;
		return;
	}
	if (t->blank)
		t->out[t->n++] = ' ';
	t->blank = false;
	t->out[t->n++] = c;
}

static const char *find_line(const char *file, const char *end, unsigned line)
{
	while (line > 1 && file && file < end) {
		file = memchr(file, '\n', (size_t)(end - file));
		file = file ? file + 1 : NULL;
		line--;
	}
	return line == 1 && file && file < end ? file : NULL;
}

/* The closing quote of the string that begins at p, if it ends on its line; else NULL. */
static const char *string_end(const char *p, const char *end)
{
	char quote = *p;

	for (p++; p < end && *p != quote; p++)
		if (*p == '\\')
			p++;
	return p < end ? p : NULL;
}

/* Copies a line; true if the statement goes on in the next. */
static bool take_line(struct text *t, const char *p, const char *end, int *depth)
{
	while (p < end && !*t->cut) {
		const char *close = *p == '"' || *p == '\'' ? string_end(p, end) : NULL;

		if (*p == '#')
			break;
		if (*p == '\\' && p + 1 == end)
			return true;
		if (*p == '(' || *p == '[' || *p == '{')
			(*depth)++;
		*depth -= *p == ')' || *p == ']' || *p == '}';
		for (; close && p < close; p++)
			put(t, *p);
		put(t, *p++);
	}
	return *depth > 0;
}

/* Copies the line after a statement that torch.compile wrote, if it lists a buffer's operators. */
static void take_nodes(struct text *t, const char *p, const char *end)
{
	static const char sign[] = "# Topologically Sorted Source Nodes: ";
	const char *stop;

	while (p < end && (*p == ' ' || *p == '\t'))
		p++;
	if ((size_t)(end - p) < sizeof(sign) || memcmp(p, sign, sizeof(sign) - 1))
		return;
	stop = memchr(p, '\n', (size_t)(end - p));
	for (put(t, ' '); p < (stop ? stop : end) && !*t->cut; p++)
		put(t, *p);
}

/* The length without a character of several bytes that a cut has split. */
static size_t whole_characters(const char *s, size_t n)
{
	size_t begin = n;

	while (begin && ((unsigned char)s[begin - 1] & 0xc0) == 0x80)
		begin--;
	if (begin && (unsigned char)s[begin - 1] >= 0xc0) {
		unsigned char lead = (unsigned char)s[begin - 1];
		size_t whole = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;

		return n - (begin - 1) < whole ? begin - 1 : n;
	}
	return n;
}

size_t source_text(const char *file, size_t len, unsigned line, char *out, size_t room, int *cut)
{
	const char *end = file + len, *p = find_line(file, end, line);
	struct text t = { .out = out, .room = room, .cut = cut };
	int depth = 0;

	*cut = 0;
	for (int i = 0; p && p < end && i < LINES_MOST; i++) {
		const char *stop = memchr(p, '\n', (size_t)(end - p));
		const char *last = stop ? stop : end;

		if (last > p && last[-1] == '\r')
			last--;
		if (!take_line(&t, p, last, &depth) || *cut) {
			if (!*cut && stop)
				take_nodes(&t, stop + 1, end);
			break;
		}
		put(&t, ' ');
		t.joined = true;
		p = stop ? stop + 1 : NULL;
		*cut = i + 1 == LINES_MOST;
	}
	return whole_characters(out, t.n);
}

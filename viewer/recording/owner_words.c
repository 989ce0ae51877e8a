/* SPDX-License-Identifier: Apache-2.0 */
#include "owner_words.h"

#include "../base/emit.h"
#include "symbols.h"

#define CODE	 40 /* columns for the code behind -c */
#define LEAST	 6  /* fewest columns of a useful name */
#define BACKWARD " (backward)"
#define COMPILED " (compiled)"

bool words_are_cut(void)
{
	return emit_screen() > 0;
}

size_t words_whole(const char *text, size_t n)
{
	return n && (text[n] & 0xc0) == 0x80 ? words_whole(text, n - 1) : n;
}

const char *words_within(const char *text, char *buf, size_t room, size_t columns)
{
	if (columns < 3 || !words_are_cut() || strlen(text) <= columns)
		snprintf(buf, room, "%s", text);
	else
		snprintf(buf, room, "%.*s..", (int)words_whole(text, columns - 2), text);
	return buf;
}

const char *words_end(const char *text, char *buf, size_t room, size_t columns)
{
	size_t len = strlen(text);

	if (columns < 3 || !words_are_cut() || len <= columns)
		snprintf(buf, room, "%s", text);
	else
		snprintf(buf, room, "..%s", text + words_whole(text, len - columns + 2));
	return buf;
}

const char *owner_place(const struct owner *o, char *buf, size_t room, size_t columns)
{
	char whole[OWNER_WORDS];

	if (o->line)
		snprintf(whole, sizeof(whole), "%.400s:%u", owners_base(o->file), o->line);
	else
		snprintf(whole, sizeof(whole), "%.400s", owners_base(o->file));
	return words_end(whole, buf, room, columns);
}

const char *owner_name(const struct owner *o, char *brief, size_t room)
{
	return strstr(o->function, "::") ? demangle_brief(o->function, brief, room) : o->function;
}

static const char *name_of(const struct owner *o, char *brief, size_t room)
{
	return o->function[0] ? owner_name(o, brief, room) : "(no stack)";
}

static bool says_backward(const char *name)
{
	const char *last = strstr(name, "Backward");

	return last && strspn(last + 8, "0123456789") == strlen(last + 8);
}

/* Prints name and place, the name cut to LEAST columns at least. False: they do not fit. */
static bool fit_name(const char *name, const char *where, char *buf, size_t room, size_t columns)
{
	size_t len = strlen(name), rest = strlen(where);

	if (!columns || len + rest <= columns) {
		snprintf(buf, room, "%s%s", name, where);
		return true;
	}
	if (columns < rest + LEAST)
		return false;
	snprintf(buf, room, "%.*s..%s", (int)(columns - rest - 2), name, where);
	return true;
}

const char *owner_words(const struct owner *o, char *buf, size_t room, size_t columns)
{
	char brief[256], where[OWNER_WORDS] = "";
	const char *name = name_of(o, brief, sizeof(brief));

	if (!words_are_cut())
		columns = 0;
	if (o->backward) {
		bool whole = !columns || strlen(name) + strlen(BACKWARD) <= columns;

		fit_name(name, whole || !says_backward(name) ? BACKWARD : "", buf, room, columns);
		return buf;
	}
	if (o->file[0]) {
		where[0] = ' ';
		owner_place(o, where + 1, sizeof(where) - 1 - sizeof(COMPILED), 0);
		if (o->compiled && o->line)
			strcat(where, COMPILED);
	}
	if (!fit_name(name, where, buf, room, columns))
		owner_place(o, buf, room, columns);
	return buf;
}

const char *owner_words_within(const struct owner *o, char *buf, size_t room, size_t columns)
{
	char whole[OWNER_WORDS], brief[256];

	if (columns && o->backward) {
		const char *name = name_of(o, brief, sizeof(brief));

		if (says_backward(name) && strlen(name) + strlen(BACKWARD) > columns)
			return words_within(name, buf, room, columns);
	}
	owner_words(o, whole, sizeof(whole), 0);
	if (columns && o->file[0] && strlen(whole) > columns)
		return owner_place(o, buf, room, columns);
	return owner_words(o, buf, room, columns);
}

const char *words_of_place(const char *text, char *buf, size_t room, size_t columns)
{
	const char *last = strrchr(text, ' '), *number = last ? strrchr(last, ':') : NULL;

	if (strlen(text) <= columns) {
		snprintf(buf, room, "%s", text);
	} else if (number && number[1] && strspn(number + 1, "0123456789") == strlen(number + 1)) {
		words_end(last + 1, buf, room, columns);
	} else {
		words_within(text, buf, room, columns);
	}
	return buf;
}

/* Copies an argument, with one blank for each run of white space; of code only the beginning. */
static size_t add_argument(const char *s, size_t len, bool code, char *buf, size_t room)
{
	size_t n = 0;
	bool blank = true;

	for (size_t i = 0; i < len && n + 4 < room; i++) {
		bool space = s[i] == ' ' || (s[i] > 0 && s[i] < 32) || s[i] == 127;

		if (code && n >= CODE) {
			n += (size_t)snprintf(buf + n, room - n, "..");
			break;
		}
		if (!space)
			buf[n++] = s[i];
		else if (!blank)
			buf[n++] = ' ';
		blank = space;
	}
	while (n && buf[n - 1] == ' ')
		n--;
	buf[n] = 0;
	return n;
}

/* Whether the next argument is code, as after `python -c`. */
static bool is_code_next(const char *argument)
{
	return argument[0] == '-' && argument[1] && argument[1] != '-' &&
	       argument[strlen(argument) - 1] == 'c' && strlen(argument) <= 4;
}

struct defs_text argv_line(const char *argv, size_t len)
{
	char *line = need_copy(argv, len);

	while (len && !line[len - 1])
		len--;
	for (size_t i = 0; i < len; i++)
		line[i] = line[i] ? line[i] : ' ';
	return (struct defs_text){ line, len };
}

const char *command_words(const struct defs *d, char *buf, size_t room)
{
	struct defs_text argv = defs_meta(d, "argv");
	const char *end = argv.s + argv.len, *p = argv.len ? owners_base(argv.s) : end;
	bool code = false, had_code = false;
	size_t n = 0;

	buf[0] = 0;
	while (p < end && n + 8 < room) {
		size_t len = strnlen(p, (size_t)(end - p));

		if (n)
			buf[n++] = ' ';
		if (code)
			buf[n++] = '\'';
		n += add_argument(p, len, code, buf + n, room - n - 2);
		if (code)
			buf[n++] = '\'';
		had_code |= code;
		code = !had_code && is_code_next(p);
		p += len + 1;
	}
	while (n && buf[n - 1] == ' ')
		n--;
	buf[n] = 0;
	return buf;
}

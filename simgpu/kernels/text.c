/* SPDX-License-Identifier: Apache-2.0
 *
 * Cuts readable names at the commas and brackets of their parts. Any thread.
 */
#include "text.h"
#include <stdlib.h>
#include <string.h>
#include "kernels.h"

static const char *find_mark(struct text t, const char *mark)
{
	return t.at ? memmem(t.at, t.n, mark, strlen(mark)) : NULL;
}

/* Some names are parsed again at every launch, so characters are classified by a table. */
enum { PLAIN, OPENS, CLOSES, PARTS };
static const unsigned char kinds[256] = {
	['<'] = OPENS,	['('] = OPENS,	['{'] = OPENS,	['['] = OPENS,	[','] = PARTS,
	['>'] = CLOSES, [')'] = CLOSES, ['}'] = CLOSES, [']'] = CLOSES,
};

/* The end of the argument that begins here: at a comma or bracket that is not its own. */
static const char *skip(const char *at, const char *end)
{
	int depth = 0;

	for (; at < end; at++) {
		int kind = kinds[(unsigned char)*at];

		depth += kind == OPENS;
		if ((kind == CLOSES && depth-- == 0) || (kind == PARTS && !depth))
			break;
	}
	return at;
}

static struct text nth(const char *at, const char *end, int i)
{
	const char *stop = skip(at, end);

	while (i-- > 0) {
		if (stop >= end || *stop != ',')
			return (struct text){ 0 };
		for (at = stop + 1; at < end && *at == ' '; at++)
			;
		stop = skip(at, end);
	}
	for (; stop > at && stop[-1] == ' '; stop--)
		;
	return (struct text){ at, stop - at };
}

struct text text_argument(const struct kernel *k, int i)
{
	struct text t = { k->text, k->text ? strlen(k->text) : 0 };

	return text_argument_of(t, k->family->mark, i);
}

struct text text_argument_of(struct text t, const char *mark, int i)
{
	struct text rest = text_after(t, mark);

	return rest.at ? nth(rest.at, rest.at + rest.n, i) : rest;
}

struct text text_last_argument_of(struct text t, const char *mark, int i)
{
	struct text rest = text_after(t, mark);

	for (struct text next; rest.at && (next = text_after(rest, mark)).at;)
		rest = next;
	return rest.at ? nth(rest.at, rest.at + rest.n, i) : rest;
}

bool text_has(struct text t, const char *mark)
{
	return find_mark(t, mark) != NULL;
}

struct text text_after(struct text t, const char *mark)
{
	const char *at = find_mark(t, mark);

	if (!at)
		return (struct text){ 0 };
	at += strlen(mark);
	return (struct text){ at, t.n - (at - t.at) };
}

int text_number(struct text t, int otherwise)
{
	char *end;
	long n;

	if (!t.at)
		return otherwise;
	n = strtol(t.at, &end, 10);
	return end > t.at && end <= t.at + t.n ? (int)n : otherwise;
}

static const struct {
	const char *name;
	char type;
} types[] = {
	{ "bool", 'b' },	  { "signed char", 'a' },   { "char", 'a' },
	{ "unsigned char", 'h' }, { "short", 's' },	    { "unsigned short", 't' },
	{ "int", 'i' },		  { "unsigned int", 'j' },  { "long", 'l' },
	{ "unsigned long", 'm' }, { "long long", 'l' },	    { "unsigned long long", 'm' },
	{ "float", 'f' },	  { "double", 'd' },	    { "c10::Half", 'H' },
	{ "__half", 'H' },	  { "c10::BFloat16", 'B' }, { "__nv_bfloat16", 'B' },
};

/* Types that only have a size are moved as whole numbers of that size. */
static char opaque(struct text t)
{
	switch (text_number(text_after(t, "OpaqueType<"), 0)) {
	case 1:
		return 'h';
	case 2:
		return 't';
	case 4:
		return 'j';
	default:
		return text_number(text_after(t, "OpaqueType<"), 0) == 8 ? 'm' : 0;
	}
}

char text_type(struct text t)
{
	static const char constant[] = " const";
	size_t n = strlen(constant);

	for (; t.n && strchr("*& ", t.at[t.n - 1]); t.n--)
		;
	if (t.n > n && !memcmp(t.at + t.n - n, constant, n))
		t.n -= n;
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (t.n == strlen(types[i].name) && !memcmp(t.at, types[i].name, t.n))
			return types[i].type;
	return t.n && t.at[t.n - 1] == '>' ? opaque(t) : 0;
}

struct text text_parameter(const struct kernel *k, int i)
{
	struct text t = { k->text, k->text ? strlen(k->text) : 0 };
	const char *mark = k->family->mark, *at, *end;

	t = text_after(t, mark);
	if (!t.at)
		return t;
	at = t.at;
	end = at + t.n;
	if (mark[strlen(mark) - 1] == '<')
		while (at < end && *(at = skip(at, end)) == ',')
			at++;
	at = at < end && *at == '>' ? at + 1 : at;
	at = at < end && at[0] == '(' ? at + 1 : at;
	return nth(at, end, i);
}

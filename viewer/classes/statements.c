/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a line of the program's source says of the tensor that it makes: read as text, as far as the
 * file is there, and never taken for more than a hint.
 */
#include <stdio.h>
#include <string.h>

#include "rules.h"

enum { LOOK_BACK = 6, LOOK_ON = 40, WIDTH = 1024 };

/* Reads lines [from, from + n) into text, one behind the other; how many there are. */
static int read_lines(const char *path, unsigned from, int n, char text[][WIDTH])
{
	FILE *f = fopen(path, "r");
	unsigned line = 0;
	int got = 0;
	char skipped[WIDTH];

	while (f && got < n) {
		char *to = ++line < from ? skipped : text[got];

		if (!fgets(to, WIDTH, f))
			break;
		got += line >= from;
	}
	if (f)
		fclose(f);
	return got;
}

static int depth_of(const char *s)
{
	int depth = 0;

	for (; *s; s++)
		depth += (*s == '(' || *s == '[') - (*s == ')' || *s == ']');
	return depth;
}

/* The first name that a statement assigns to, "" if it is none. */
static void assigned(const char *s, char *name, size_t room)
{
	size_t n;

	s += strspn(s, " \t");
	n = strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789");
	name[0] = 0;
	if (n && n < room && strchr(s, '=') && strchr(" ,=:", s[n]))
		snprintf(name, room, "%.*s", (int)n, s);
}

/* The lines around one: its statement is lines[first..at]. */
struct source {
	char lines[LOOK_BACK + LOOK_ON][WIDTH];
	int n, first, at;
	char name[64]; /* that the statement assigns to */
};

static bool read_statement(struct source *s, const char *path, unsigned line)
{
	unsigned from = line > LOOK_BACK ? line - LOOK_BACK : 1;

	s->n = read_lines(path, from, LOOK_BACK + LOOK_ON, s->lines);
	s->first = s->at = line - from;
	if (!line || s->at >= s->n)
		return false;
	for (int i = s->at, depth = 0; i > 0 && i > s->at - LOOK_BACK; i--) {
		depth += depth_of(s->lines[i - 1]);
		if (depth > 0) {
			s->first = i - 1;
			break;
		}
	}
	assigned(s->lines[s->first], s->name, sizeof(s->name));
	return true;
}

static bool is_word(char c)
{
	return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
	       (c >= 'A' && c <= 'Z');
}

/* Where the part begins in the line and is not the end of a longer word: "nn.Buffer(" holds
 * "Buffer(", "ReplayBuffer(" does not. */
static const char *find_part(const char *line, const char *part)
{
	for (const char *s = line; (s = strstr(s, part)); s++)
		if (s == line || !is_word(*s) || !is_word(s[-1]))
			return s;
	return NULL;
}

static bool says(const struct source *s, const char *part)
{
	for (int i = s->first; i <= s->at; i++)
		if (find_part(s->lines[i], part))
			return true;
	return false;
}

/* The name as a word of its own in the line, from there on; NULL if it is not there. */
static const char *find_name(const char *line, const char *name)
{
	size_t n = strlen(name);

	for (const char *s = line; (s = strstr(s, name)); s += n)
		if (!is_word(s[n]) && (s == line || !is_word(s[-1])))
			return s;
	return NULL;
}

/* A later statement of the same function says it of the name that this one assigns to: before the
 * name, or right behind it. */
static bool says_later(const struct source *s, const char *part, bool behind)
{
	for (int i = s->at + 1; i < s->n && s->name[0] && !strstr(s->lines[i], "def "); i++) {
		const char *said = find_part(s->lines[i], part);
		const char *name = find_name(behind ? s->lines[i] : said ? said : "", s->name);

		if (said && name && (!behind || said == name + strlen(s->name)))
			return true;
	}
	return false;
}

/* The statement uses what a loop over buffers gives: "for name, buf in net.named_buffers():". */
static bool walks_buffers(const struct source *s)
{
	char name[64];

	for (int i = s->first - 1; i >= 0; i--) {
		const char *in = strstr(s->lines[i], " in "), *start = in;

		if (!in || !strstr(in, "buffers(") || !find_part(s->lines[i], "for "))
			continue;
		while (start > s->lines[i] && is_word(start[-1]))
			start--;
		snprintf(name, sizeof(name), "%.*s", (int)(in - start), start);
		return name[0] && find_name(s->lines[s->at], name);
	}
	return false;
}

/* The statement around a line registers a buffer, or makes what a later one registers. */
bool statement_registers_buffer(const char *path, unsigned line)
{
	static const char *const parts[] = { "register_buffer(", "Buffer(" };
	static struct source s;

	if (!read_statement(&s, path, line))
		return false;
	for (int i = 0; i < 2; i++)
		if (says(&s, parts[i]) || says_later(&s, parts[i], false))
			return true;
	return says(&s, "_buffers[") || walks_buffers(&s);
}

/* What stands before the first '=' of the statement, without blanks. */
static size_t target_of(const struct source *s, const char **target)
{
	const char *text = s->lines[s->first] + strspn(s->lines[s->first], " \t");
	const char *end = strchr(text, '=');
	size_t n = end && end[1] != '=' ? (size_t)(end - text) : 0;

	while (n && text[n - 1] == ' ')
		n--;
	*target = text;
	return n;
}

static bool has(const char *s, size_t n, const char *part)
{
	return memmem(s, n, part, strlen(part)) != NULL;
}

/* Tables of angles and masks are cached too, but are no keys or values. */
static bool names_cache(const char *s, size_t n)
{
	static const char *const others[] = { "cos", "sin", "rope", "freq", "mask", "pos" };

	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		if (has(s, n, others[i]))
			return false;
	return has(s, n, "cache") || has(s, n, "past");
}

/* "grad", "grads", "flat_grad", "gradients", but not what only has to do with them. */
static bool is_gradient(const char *word, size_t n)
{
	static const char *const others[] = { "no_grad",       "enable_grad",	 "zero_grad",
					      "requires_grad", "requires_grad_", "grad_fn",
					      "retain_grad",   "grad_norm" };
	const char *at = memmem(word, n, "grad", 4);
	const char *behind = at ? at + 4 : NULL;

	if (!at || (at > word && at[-1] != '_') || (n > 5 && !memcmp(word, "clip_", 5)))
		return false;
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		if (n == strlen(others[i]) && !memcmp(word, others[i], n))
			return false;
	return behind == word + n || *behind == 's' || *behind == '_' ||
	       !strncmp(behind, "ient", 4);
}

/* "self.grad_partitions = ...", and not what is made of gradients: "grad_avg". */
static bool names_gradients(const char *s, size_t n)
{
	static const char *const others[] = { "avg", "norm", "mean", "sq", "mom", "ema" };

	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		if (has(s, n, others[i]))
			return false;
	for (size_t i = 0; i < n; i++) {
		size_t start = i;

		while (i < n && is_word(s[i]))
			i++;
		if (is_gradient(s + start, i - start))
			return true;
	}
	return false;
}

/* "bucket.buffer = ...", and not what an optimizer keeps in buckets: "bucket.exp_avg". */
static bool names_bucket(const char *s, size_t n)
{
	static const char *const others[] = { "avg",   "mom",	 "ema",	   "sq",
					      "param", "weight", "master", "state" };

	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		if (has(s, n, others[i]))
			return false;
	return has(s, n, "bucket");
}

/* "p.grad = ...", "p.main_grad = ...", "self.cache_k = ..." */
static uint32_t places_of_target(const struct source *s)
{
	const char *t;
	size_t n = target_of(s, &t);
	uint32_t found = 0;

	if (n > 5 && !memcmp(t + n - 4, "grad", 4) && (t[n - 5] == '.' || t[n - 5] == '_'))
		found |= PLACE_GRAD;
	if (names_gradients(t, n))
		found |= PLACE_NAMED_GRAD;
	if (names_bucket(t, n))
		found |= PLACE_BUCKET;
	if (n > 5 && !memcmp(t, "self.", 5) && !has(t, n, ".data"))
		found |= PLACE_ATTRIBUTE;
	if (n && !has(t, n, ".data") && names_cache(t, n))
		found |= PLACE_CACHE;
	return found;
}

static bool speaks_of_gradients(const struct source *s)
{
	for (int i = s->first; i <= s->at; i++)
		for (const char *c = s->lines[i]; *c && *c != '#';) {
			const char *start = c;

			while (is_word(*c))
				c++;
			if (is_gradient(start, c - start))
				return true;
			c += c == start;
		}
	return false;
}

uint32_t statement_places(const char *path, unsigned line)
{
	static struct source s;
	uint32_t found;

	if (!read_statement(&s, path, line))
		return 0;
	found = places_of_target(&s) | PLACE_READ;
	if (speaks_of_gradients(&s))
		found |= PLACE_OF_GRAD;
	if (says(&s, "requires_grad=True") || says(&s, "requires_grad_(") ||
	    says_later(&s, ".requires_grad", true))
		found |= PLACE_LEAF;
	if (says(&s, "Parameter(") || says_later(&s, "Parameter(", false))
		found |= PLACE_PARAMETER | PLACE_LEAF;
	return found;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Reads PYTORCH_CUDA_ALLOC_CONF, and computes the sizes that depend on it alone. */
#include "alloc_conf.h"

#include "../base/arithmetic.h"

#define SMALL	    MIB
#define SMALL_PAGE  (2 * MIB)
#define LARGE_ALLOC (10 * MIB)
#define LEAST	    512

/* In earlier releases the value of ">" applies from the last boundary itself on. */
#define LIST_CHANGED 209
#define LATEST	     UINT_MAX

enum how { SIZE, SHARE, DIVISIONS, EXPANDABLE, BACKEND, IGNORED };

static const struct key {
	const char *name;
	enum how how;
	unsigned after; /* releases up to this one do not know it */
	size_t at;	/* for a size or a share: offset in alloc_settings */
	uint64_t least; /* least value, MiB */
} keys[] = {
#define AT(member)			     offsetof(struct alloc_settings, member)
#define SETTING(name, how, after, at, least) { #name, how, after, at, least },
#include "alloc_keys.def"
#undef SETTING
};

#define KEYS (sizeof(keys) / sizeof(*keys))
#define WORD 48

struct parser {
	const char *at;
	char *why;
	unsigned release;
};

static const char *wrong(struct parser *p, const char *what, const char *word)
{
	snprintf(p->why, SETTINGS_WHY, "%s: %.40s", what, word);
	return p->why;
}

static const char *too_new(struct parser *p, const char *key)
{
	snprintf(p->why, SETTINGS_WHY,
		 "PyTorch %u.%u, the recorded version, has no setting %.40s and would not start",
		 p->release / 100, p->release % 100, key);
	return p->why;
}

/* Reads the next word, up to one of ":,[]"; blanks are ignored. */
static void next_word(struct parser *p, char word[WORD])
{
	size_t n = 0;

	for (; *p->at && !strchr(":,[]", *p->at); p->at++)
		if (*p->at != ' ' && n < WORD - 1)
			word[n++] = *p->at;
	word[n] = 0;
}

static bool next_is(struct parser *p, char c)
{
	while (*p->at == ' ')
		p->at++;
	if (*p->at != c)
		return false;
	p->at++;
	return true;
}

static bool whole(const char *word, uint64_t *n)
{
	char *end;

	*n = strtoull(word, &end, 10);
	return end != word && !*end && *word != '-' && *n < UINT64_MAX / MIB;
}

static bool power_of_two(uint64_t n)
{
	return n && !(n & (n - 1));
}

static void fill(struct alloc_settings *s, size_t from, size_t to, uint32_t value)
{
	for (size_t i = from; i < to && i < INTERVALS; i++)
		s->divisions[i] = value;
}

/* [256:1,512:2,>:8]: the first value applies up to its boundary, each other to its interval. */
static const char *parse_divisions(struct parser *p, struct alloc_settings *s)
{
	char word[WORD], value[WORD];
	uint64_t boundary = 0, n;
	size_t last = 0, index;

	for (bool first = true; !next_is(p, ']'); first = false) {
		next_word(p, word);
		if (!next_is(p, ':'))
			return wrong(p, "expected SIZE:DIVISIONS in roundup_power2_divisions at",
				     p->at);
		next_word(p, value);
		if (!whole(value, &n) || (n && !power_of_two(n)))
			return wrong(p, "roundup_power2_divisions takes powers of two", value);
		if (!strcmp(word, ">")) {
			fill(s, last + (p->release >= LIST_CHANGED), INTERVALS, (uint32_t)n);
		} else {
			if (!whole(word, &boundary) || !power_of_two(boundary))
				return wrong(p, "a boundary must be a power of two, in MiB", word);
			index = arithmetic_log2(boundary) < INTERVALS ? arithmetic_log2(boundary)
								      : INTERVALS - 1;
			fill(s, first ? 0 : index, index + 1, (uint32_t)n);
			last = index;
		}
		next_is(p, ',');
		if (!*p->at)
			return wrong(p, "a list without its end", "]");
	}
	return NULL;
}

static const char *parse_size(struct parser *p, uint64_t *bytes, uint64_t least, const char *word)
{
	uint64_t n;

	if (!whole(word, &n))
		return wrong(p, "not a number of MiB", word);
	if (n < least)
		return wrong(p, "too small a number of MiB", word);
	*bytes = n * MIB;
	return NULL;
}

static const char *parse_share(struct parser *p, double *share, const char *word)
{
	char *end;

	*share = strtod(word, &end);
	if (end == word || *end || !(*share > 0 && *share <= 1))
		return wrong(p, "not a number between 0 and 1", word);
	return NULL;
}

static const char *parse_value(struct parser *p, struct alloc_settings *s, const struct key *k)
{
	char word[WORD];
	uint64_t n;

	if (k->how == DIVISIONS && next_is(p, '['))
		return parse_divisions(p, s);
	if (k->how == IGNORED && next_is(p, '[')) {
		p->at += strcspn(p->at, "]");
		return next_is(p, ']') ? NULL : wrong(p, "a list without its end", "]");
	}
	next_word(p, word);
	switch (k->how) {
	case SIZE:
		return parse_size(p, (uint64_t *)((char *)s + k->at), k->least, word);
	case SHARE:
		return parse_share(p, (double *)((char *)s + k->at), word);
	case DIVISIONS:
		if (!whole(word, &n) || (n && !power_of_two(n)))
			return wrong(p, "roundup_power2_divisions takes a power of two", word);
		fill(s, 0, INTERVALS, (uint32_t)n);
		return NULL;
	case EXPANDABLE:
		s->expandable = !strcmp(word, "True");
		if (!s->expandable && strcmp(word, "False"))
			return wrong(p, "expandable_segments is True or False", word);
		return NULL;
	case BACKEND:
		return strcmp(word, "native")
			       ? wrong(p, "only backend:native can be replayed", word)
			       : NULL;
	case IGNORED:
		break;
	}
	return NULL;
}

const char *settings_parse(struct alloc_settings *s, const char *text, unsigned release,
			   char why[SETTINGS_WHY])
{
	struct parser p = { text, why, release ? release : LATEST };
	const char *error;
	char key[WORD];
	size_t i;

	*s = (struct alloc_settings){ .max_split = UINT64_MAX,
				      .rounding = 20 * MIB,
				      .large_segment = 20 * MIB };
	while (*p.at) {
		next_word(&p, key);
		for (i = 0; i < KEYS && strcmp(keys[i].name, key); i++)
			;
		if (i == KEYS)
			return wrong(&p, "no setting of PYTORCH_CUDA_ALLOC_CONF", key);
		if (p.release <= keys[i].after)
			return too_new(&p, key);
		if (!next_is(&p, ':'))
			return wrong(&p, "expected a colon and a value after", key);
		error = parse_value(&p, s, &keys[i]);
		if (error)
			return error;
		if (!next_is(&p, ',') && *p.at)
			return wrong(&p, "expected a comma at", p.at);
	}
	return NULL;
}

/* Rounds up to one of `divisions` equal steps between two powers of two. */
static uint64_t next_division(uint64_t bytes, uint64_t divisions)
{
	uint64_t step = (1ull << arithmetic_log2(bytes)) / divisions;

	return power_of_two(bytes) ? bytes : (bytes + step - 1) / step * step;
}

uint64_t settings_round(const struct alloc_settings *s, uint64_t bytes)
{
	unsigned log = arithmetic_log2(bytes);
	size_t interval = log > 20 ? log - 20 : 0;
	uint64_t divisions = s->divisions[interval < INTERVALS ? interval : INTERVALS - 1];

	if (bytes < LEAST)
		return LEAST;
	if (divisions > 1 && bytes > LEAST * divisions)
		return next_division(bytes, divisions);
	return (bytes + LEAST - 1) / LEAST * LEAST;
}

uint64_t settings_segment(const struct alloc_settings *s, uint64_t bytes)
{
	if (bytes <= SMALL)
		return SMALL_PAGE;
	if (bytes < LARGE_ALLOC)
		return s->large_segment;
	return (bytes + SMALL_PAGE - 1) / SMALL_PAGE * SMALL_PAGE;
}

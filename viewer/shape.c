/* SPDX-License-Identifier: Apache-2.0 */
#include "shape.h"

#include <stdlib.h>

#include "need.h"

#define HEAD_WIDTH 64 /* what most models have */

static const char *const names[SHAPE_FIGURES] = {
	[SHAPE_PARAMETERS] = "parameters",
	[SHAPE_BYTES] = "bytes",
	[SHAPE_LAYERS] = "layers",
	[SHAPE_WIDTH] = "width",
	[SHAPE_HEADS] = "heads",
	[SHAPE_TOKENS] = "tokens",
	[SHAPE_BATCH] = "batch",
	[SHAPE_SEQUENCE] = "sequence",
	[SHAPE_ACTIVATION_BYTES] = "activation_bytes",
};

const char *shape_name(enum shape_figure f)
{
	return names[f];
}

const char *shape_source(enum figure_source s)
{
	static const char *const words[] = { "unknown", "given", "inferred", "assumed" };

	return words[s];
}

bool shape_has(const struct shape *s, enum shape_figure f)
{
	return s->figures[f].source != FIGURE_UNKNOWN;
}

double shape_get(const struct shape *s, enum shape_figure f)
{
	return s->figures[f].value;
}

static void set(struct shape *s, enum shape_figure f, double value, enum figure_source source)
{
	if (s->figures[f].source == FIGURE_UNKNOWN && value > 0)
		s->figures[f] = (struct figure){ value, source };
}

static void add_size(struct sizes *s, uint64_t size)
{
	size_t i = 0;

	while (i < s->count && s->items[i].size < size)
		i++;
	if (i < s->count && s->items[i].size == size) {
		s->items[i].count++;
		return;
	}
	s->items = need_grow(s->items, &s->room, s->count, sizeof(*s->items));
	for (size_t k = s->count++; k > i; k--)
		s->items[k] = s->items[k - 1];
	s->items[i] = (struct size_count){ size, 1 };
}

static uint64_t count_of(const struct sizes *s, uint64_t size)
{
	for (size_t i = 0; i < s->count; i++)
		if (s->items[i].size == size)
			return s->items[i].count;
	return 0;
}

static uint64_t total(const struct sizes *s)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < s->count; i++)
		sum += s->items[i].size * s->items[i].count;
	return sum;
}

/* 16-bit weights beside 32-bit moments, and perhaps a 32-bit copy, are 4 or 6 times as much state
 * as parameters; all of one width is twice as much. */
static void infer_bytes(struct shape *s, uint64_t parameters, uint64_t state)
{
	double ratio = parameters ? (double)state / parameters : 0;

	if (ratio > 3.5)
		set(s, SHAPE_BYTES, 2, FIGURE_INFERRED);
	set(s, SHAPE_BYTES, 4, FIGURE_ASSUMED);
}

/* Norms and biases are vectors of the width: the most frequent size whose square is a matrix too.
 */
static void infer_width(struct shape *s, const struct sizes *leaves)
{
	double bytes = shape_get(s, SHAPE_BYTES);
	uint64_t largest = leaves->count ? leaves->items[leaves->count - 1].size : 0;
	const struct size_count *best = NULL;

	for (size_t i = 0; i < leaves->count; i++) {
		const struct size_count *c = &leaves->items[i];

		if (c->count < 2 || c->size / bytes < 16 ||
		    c->size * (c->size / bytes) > largest * 4.0)
			continue;
		if (!best || c->count > best->count)
			best = c;
	}
	if (best)
		set(s, SHAPE_WIDTH, best->size / bytes, FIGURE_INFERRED);
}

static uint64_t gcd(uint64_t a, uint64_t b)
{
	return b ? gcd(b, a % b) : a;
}

/* Every layer has the same matrices: what divides how often each size is there. */
static void infer_layers(struct shape *s, const struct sizes *leaves)
{
	double matrix = shape_get(s, SHAPE_WIDTH) * shape_get(s, SHAPE_WIDTH) *
			shape_get(s, SHAPE_BYTES) / 16;
	uint64_t often = 0, any = 0;

	if (matrix <= 0)
		return;
	for (size_t i = 0; i < leaves->count; i++) {
		const struct size_count *c = &leaves->items[i];

		if (c->size < matrix || c->count < 2)
			continue;
		any = gcd(any, c->count);
		if (c->count > 2)
			often = gcd(often, c->count);
	}
	set(s, SHAPE_LAYERS, often ? often : any, FIGURE_INFERRED);
}

/* A tensor of the width for each token is saved in every layer. That it is one for each token is
 * seen by what else is saved: statistics of norms in every layer, 4 bytes a token, or else indices,
 * 8 bytes a token. */
static bool find_tokens(struct shape *s, const struct sizes *saved, double bytes, bool by_norms)
{
	uint64_t each = shape_get(s, SHAPE_WIDTH) * bytes, layers = shape_get(s, SHAPE_LAYERS);
	uint64_t tokens = 0;

	for (size_t i = 0; each && i < saved->count; i++) {
		const struct size_count *c = &saved->items[i];
		uint64_t n = c->size / each;

		if (c->size % each || n < 2 || c->count < 2 || c->count < layers)
			continue;
		if (by_norms ? count_of(saved, n * 4) >= layers : count_of(saved, n * 8) > 0)
			tokens = n;
	}
	set(s, SHAPE_TOKENS, tokens, FIGURE_INFERRED);
	if (tokens)
		set(s, SHAPE_ACTIVATION_BYTES, bytes, FIGURE_INFERRED);
	return tokens;
}

static void infer_tokens(struct shape *s, const struct sizes *saved)
{
	double widths[] = { shape_get(s, SHAPE_ACTIVATION_BYTES), shape_get(s, SHAPE_BYTES), 2, 4 };

	for (int norms = 1; norms >= 0; norms--)
		for (size_t w = 0; w < sizeof(widths) / sizeof(widths[0]); w++)
			if (find_tokens(s, saved, widths[w], norms))
				return;
}

/* Figures that follow from others. */
static void complete(struct shape *s)
{
	double tokens = shape_get(s, SHAPE_TOKENS), batch = shape_get(s, SHAPE_BATCH);
	double sequence = shape_get(s, SHAPE_SEQUENCE);

	if (batch && sequence)
		s->figures[SHAPE_TOKENS] = (struct figure){ batch * sequence, FIGURE_GIVEN };
	else if (tokens && batch)
		set(s, SHAPE_SEQUENCE, tokens / batch, FIGURE_INFERRED);
	else if (tokens && sequence)
		set(s, SHAPE_BATCH, tokens / sequence, FIGURE_INFERRED);
	set(s, SHAPE_HEADS, (uint64_t)(shape_get(s, SHAPE_WIDTH) / HEAD_WIDTH), FIGURE_ASSUMED);
	set(s, SHAPE_ACTIVATION_BYTES, shape_get(s, SHAPE_BYTES), FIGURE_ASSUMED);
}

void shape_infer(struct shape *out, const struct sizes *leaves, const struct sizes *saved,
		 uint64_t parameters, uint64_t state)
{
	out->trainable = total(leaves);
	infer_bytes(out, parameters, state);
	if (out->trainable > parameters * 0.9)
		parameters = out->trainable;
	set(out, SHAPE_PARAMETERS, parameters / shape_get(out, SHAPE_BYTES), FIGURE_INFERRED);
	infer_width(out, leaves);
	infer_layers(out, leaves);
	infer_tokens(out, saved);
	complete(out);
}

struct collect {
	int device;
	uint64_t since, first, last;
	struct map leaf_places, saved_places, born; /* by address */
	struct sizes leaves, saved;
};

/* What is saved counts if it was made in the same step: a weight is saved too. */
static int collect_event(void *ctx, const struct gmt_event *e)
{
	struct collect *c = ctx;
	bool fresh;

	if (e->device != c->device)
		return 0;
	if (e->kind == GMT_TAG_LEAF) {
		map_put(&c->leaf_places, e->addr, &fresh);
		if (fresh && e->size)
			add_size(&c->leaves, e->size);
	} else if (e->kind == GMT_BLOCK_ALLOC && e->seq >= c->since && e->seq <= c->last) {
		map_put(&c->born, e->addr, &fresh);
	} else if (e->kind == GMT_TAG_SAVED && e->seq >= c->first && e->seq <= c->last &&
		   map_get(&c->born, e->addr)) {
		map_put(&c->saved_places, e->addr, &fresh);
		if (fresh && e->size)
			add_size(&c->saved, e->size);
	}
	return 0;
}

int shape_find(struct shape *out, struct timeline *t, const struct step *step,
	       const struct extent *forward, uint64_t parameters, uint64_t state,
	       const double given[SHAPE_FIGURES])
{
	struct collect c = { .device = t->device,
			     .since = step->extent.first_seq,
			     .first = forward->first_seq,
			     .last = forward->last_seq };
	int rc = recording_run(t->recording, UINT64_MAX, collect_event, &c);

	*out = (struct shape){ 0 };
	for (int f = 0; f < SHAPE_FIGURES; f++)
		set(out, f, given[f], FIGURE_GIVEN);
	shape_infer(out, &c.leaves, &c.saved, parameters, state);
	map_free(&c.leaf_places);
	map_free(&c.saved_places);
	map_free(&c.born);
	free(c.leaves.items);
	free(c.saved.items);
	return rc;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "shape.h"

#include "../base/sorted.h"

#define HEAD_WIDTH 64 /* the width in most models */
#define HEAD_LEAST 16
#define HEAD_MOST  256

const char *const shape_names[SHAPE_FIGURES] = {
	[SHAPE_PARAMETERS] = "parameters", [SHAPE_BYTES] = "bytes",
	[SHAPE_SHARDS] = "shards",	   [SHAPE_LAYERS] = "layers",
	[SHAPE_WIDTH] = "width",	   [SHAPE_HEADS] = "heads",
	[SHAPE_TOKENS] = "tokens",	   [SHAPE_BATCH] = "batch",
	[SHAPE_SEQUENCE] = "sequence",	   [SHAPE_ACTIVATION_BYTES] = "activation_bytes",
};

const char *const shape_sources[] = { "unknown", "given", "inferred", "assumed" };

bool shape_has(const struct shape *s, enum shape_figure f)
{
	return s->figures[f].source != FIGURE_UNKNOWN;
}

double shape_get(const struct shape *s, enum shape_figure f)
{
	return s->figures[f].value;
}

static void shape_set(struct shape *s, enum shape_figure f, double value, enum figure_source source)
{
	if (s->figures[f].source == FIGURE_UNKNOWN && value > 0)
		s->figures[f] = (struct figure){ value, source };
}

static void sizes_add(struct sizes *s, uint64_t size)
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

static uint64_t sizes_count(const struct sizes *s, uint64_t size)
{
	for (size_t i = 0; i < s->count; i++)
		if (s->items[i].size == size)
			return s->items[i].count;
	return 0;
}

/* 16-bit weights beside 32-bit moments, and perhaps a 32-bit copy, are 4 or 6 times as much state
 * as parameters; all of one width is twice as much. */
static void infer_bytes(struct shape *s, uint64_t parameters, uint64_t state)
{
	double ratio = parameters ? (double)state / parameters : 0;

	if (ratio > 3.5)
		shape_set(s, SHAPE_BYTES, 2, FIGURE_INFERRED);
	shape_set(s, SHAPE_BYTES, 4, FIGURE_ASSUMED);
}

/* Norms and biases are vectors of the width: the most frequent size whose square can be a matrix.
 */
static void infer_width(struct shape *s, const struct sizes *leaves)
{
	double bytes = shape_get(s, SHAPE_BYTES);
	uint64_t largest = leaves->count ? leaves->items[leaves->count - 1].size : 0;
	const struct size_count *best =
		GREATEST_OF(c, leaves->items, leaves->count,
			    c->count > 1 && c->size / bytes >= 16 &&
				    c->size * (c->size / bytes) <= largest * 4.0,
			    c->count);

	if (best)
		shape_set(s, SHAPE_WIDTH, best->size / bytes, FIGURE_INFERRED);
}

/* Bytes of the matrices whose number is a multiple of `layers`. 0 if another number is off by more
 * than one, or by one with fewer than 4 layers. Numbers below `least` do not count. */
static double evenly(const struct sizes *matrices, size_t first, uint64_t least, uint64_t layers)
{
	double bytes = 0;

	for (size_t i = first; i < matrices->count; i++) {
		const struct size_count *c = &matrices->items[i];
		uint64_t over = c->count % layers;

		if (c->count < least)
			continue;
		if (over && (layers < 4 || (over != 1 && over != layers - 1)))
			return 0;
		bytes += over ? 0 : (double)c->size * c->count;
	}
	return bytes;
}

/* Every layer has the same matrices. The largest number that divides the count of each size is the
 * number of layers. A size can have one more elsewhere, or one that was not seen. */
static void infer_layers(struct shape *s, const struct sizes *leaves)
{
	double matrix = shape_get(s, SHAPE_WIDTH) * shape_get(s, SHAPE_WIDTH) *
			shape_get(s, SHAPE_BYTES) / 16;
	size_t first = 0;
	uint64_t most = 0;

	while (first < leaves->count && leaves->items[first].size < matrix)
		first++;
	for (size_t i = first; i < leaves->count; i++)
		if (leaves->items[i].count > most)
			most = leaves->items[i].count;
	if (matrix <= 0 || most < 2)
		return;
	for (uint64_t layers = most; layers > 0; layers--)
		if (evenly(leaves, first, most > 2 ? 3 : 2, layers) >
		    0.6 * evenly(leaves, first, most > 2 ? 3 : 2, 1)) {
			shape_set(s, SHAPE_LAYERS, layers, FIGURE_INFERRED);
			return;
		}
}

/* A tensor of the width for each token is saved in every layer. Other saved tensors show the number
 * of tokens: statistics of norms in every layer, 4 bytes a token, or else indices, 8 bytes a
 * token. */
static bool find_tokens(struct shape *s, const struct sizes *saved, double bytes, bool by_norms)
{
	uint64_t each = shape_get(s, SHAPE_WIDTH) * bytes, layers = shape_get(s, SHAPE_LAYERS);
	uint64_t tokens = 0;

	for (size_t i = 0; each && i < saved->count; i++) {
		const struct size_count *c = &saved->items[i];
		uint64_t n = c->size / each;

		if (c->size % each || n < 2 || c->count < 2 || c->count < layers)
			continue;
		if (by_norms ? sizes_count(saved, n * 4) >= layers : sizes_count(saved, n * 8) > 0)
			tokens = n;
	}
	shape_set(s, SHAPE_TOKENS, tokens, FIGURE_INFERRED);
	if (tokens)
		shape_set(s, SHAPE_ACTIVATION_BYTES, bytes, FIGURE_INFERRED);
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

/* Flash attention keeps the logarithm of a sum for each token and head, 4 bytes. */
static void infer_heads(struct shape *s, const struct sizes *saved)
{
	uint64_t each = shape_get(s, SHAPE_TOKENS) * 4, width = shape_get(s, SHAPE_WIDTH);
	uint64_t layers = shape_get(s, SHAPE_LAYERS), found = 0;

	for (size_t i = 0; each && i < saved->count; i++) {
		const struct size_count *c = &saved->items[i];
		uint64_t heads = c->size / each;

		if (c->size % each || heads < 2 || c->count < layers || width % heads ||
		    width / heads < HEAD_LEAST || width / heads > HEAD_MOST)
			continue;
		if (found)
			return;
		found = heads;
	}
	shape_set(s, SHAPE_HEADS, found, FIGURE_INFERRED);
}

/* Learned positions are looked up by their numbers in one sequence, 8 bytes each and saved once
 * beside the indices of all tokens. A batch of one sequence has no two sizes to tell apart. */
static void infer_sequence(struct shape *s, const struct sizes *saved)
{
	uint64_t tokens = shape_get(s, SHAPE_TOKENS), found = 0;

	if (!tokens || !sizes_count(saved, tokens * 8))
		return;
	for (size_t i = 0; i < saved->count && saved->items[i].size < tokens * 8; i++) {
		const struct size_count *c = &saved->items[i];

		if (c->count > 1 || c->size < 16 || tokens % (c->size / 8) || c->size % 8)
			continue;
		if (found)
			return;
		found = c->size / 8;
	}
	shape_set(s, SHAPE_SEQUENCE, found, FIGURE_INFERRED);
}

static void forget(struct shape *s, enum shape_figure f)
{
	if (s->figures[f].source == FIGURE_INFERRED)
		s->figures[f] = (struct figure){ 0 };
}

/* Forgets figures that fit by chance: a network without layers, or with few and no tokens, is of
 * another kind. */
static void forget_chance(struct shape *s)
{
	double layers = shape_get(s, SHAPE_LAYERS);

	if (s->figures[SHAPE_LAYERS].source == FIGURE_GIVEN || layers >= 4 ||
	    (layers >= 2 && shape_has(s, SHAPE_TOKENS)))
		return;
	forget(s, SHAPE_LAYERS);
	forget(s, SHAPE_WIDTH);
	forget(s, SHAPE_TOKENS);
	forget(s, SHAPE_ACTIVATION_BYTES);
}

/* Figures that follow from others. */
static void complete(struct shape *s)
{
	double tokens = shape_get(s, SHAPE_TOKENS), batch = shape_get(s, SHAPE_BATCH);
	double sequence = shape_get(s, SHAPE_SEQUENCE);

	if (batch && sequence)
		s->figures[SHAPE_TOKENS] = (struct figure){ batch * sequence, FIGURE_GIVEN };
	else if (tokens && batch)
		shape_set(s, SHAPE_SEQUENCE, tokens / batch, FIGURE_INFERRED);
	else if (tokens && sequence)
		shape_set(s, SHAPE_BATCH, tokens / sequence, FIGURE_INFERRED);
	if (shape_has(s, SHAPE_TOKENS))
		shape_set(s, SHAPE_HEADS, (uint64_t)(shape_get(s, SHAPE_WIDTH) / HEAD_WIDTH),
			  FIGURE_ASSUMED);
	shape_set(s, SHAPE_ACTIVATION_BYTES, shape_get(s, SHAPE_BYTES), FIGURE_ASSUMED);
}

/* Infers the figures from the sizes of whole parameters and of tensors saved at the end of forward,
 * and the bytes of all parameters and of their state. The shards are known. */
static void shape_infer(struct shape *out, const struct sizes *leaves, const struct sizes *saved,
			uint64_t parameters, uint64_t state)
{
	if (out->trainable > parameters * 0.9)
		parameters = out->trainable;
	infer_bytes(out, parameters, state);
	shape_set(out, SHAPE_PARAMETERS,
		  parameters / shape_get(out, SHAPE_BYTES) * shape_get(out, SHAPE_SHARDS),
		  FIGURE_INFERRED);
	infer_width(out, leaves);
	infer_layers(out, leaves);
	infer_tokens(out, saved);
	forget_chance(out);
	infer_heads(out, saved);
	if (!shape_has(out, SHAPE_BATCH))
		infer_sequence(out, saved);
	complete(out);
}

/*
 * The exact sizes from which a model's shape is inferred. autograd knows them for leaves and for
 * saved tensors, but blocks are rounded. A leaf outside of every parameter block at rest was
 * gathered from shards.
 */

#define SHARDS_MOST 4096
#define SMALL	    (1u << 20)

struct collect {
	int device;
	struct tensor *tensors; /* of the device, in order of address */
	bool *stays;		/* lies in a parameter's block at rest */
	size_t count;
	struct sizes saved;
	struct sizes whole;    /* tensors in parameter blocks */
	struct sizes bare;     /* parameter blocks without a tensor */
	struct sizes gathered; /* leaves in no parameter block */
};

COMPARE(by_addr, struct tensor, ORDER(x->addr, y->addr))

static void take_tensors(struct collect *c, const struct tensors *all)
{
	c->tensors = need_new((all->count + 1) * sizeof(*c->tensors));
	c->stays = need_new(all->count + 1);
	for (size_t i = 0; i < all->count; i++)
		if (all->items[i].device == c->device)
			c->tensors[c->count++] = all->items[i];
	SORT(c->tensors, c->count, by_addr);
}

/* Kept tensors were made in the step, saved in the forward pass, and are alive at its end. */
static void take_saved(struct collect *c, const struct snapshot *end, const struct step *step,
		       const struct extent *forward)
{
	FOR_BLOCKS (b, &end->moment) {
		uint64_t saved;

		if (b->seq < step->extent.first_seq)
			continue;
		saved = model_first_saved(end->model, b);
		if (saved >= forward->first_ns && saved <= forward->last_ns)
			sizes_add(&c->saved, model_storage(end->model, b));
	}
}

/* Bytes of the tensors in a parameter's block, and of the leaves among them; 0 = none is known. */
static uint64_t tensors_in(struct collect *c, size_t *i, const struct block *b, uint64_t *leaves)
{
	uint64_t sum = 0;

	while (*i < c->count && c->tensors[*i].addr < b->addr)
		++*i;
	for (; *i < c->count && c->tensors[*i].addr < b->addr + b->size; ++*i) {
		const struct tensor *t = &c->tensors[*i];

		c->stays[*i] = t->latest && t->seq >= b->seq &&
			       t->addr + t->size <= b->addr + b->size && sum + t->size <= b->size;
		if (!c->stays[*i])
			continue;
		sizes_add(&c->whole, t->size);
		sum += t->size;
		*leaves += t->leaf ? t->size : 0;
	}
	return sum;
}

/* Matches parameter blocks with the tensors in them; both are ordered by address. */
static void match(struct shape *out, struct collect *c, const struct snapshot *rest)
{
	size_t i = 0;

	FOR_BLOCKS (b, &rest->moment) {
		uint64_t sum;

		if (b->category != CATEGORY_parameters)
			continue;
		sum = tensors_in(c, &i, b, &out->trainable);
		out->exact += sum;
		if (!sum)
			sizes_add(&c->bare, b->size);
	}
	for (size_t n = 0; n < c->count; n++)
		if (c->tensors[n].leaf && !c->stays[n])
			sizes_add(&c->gathered, c->tensors[n].size);
}

/* Most bytes by which a block can exceed its tensor, because the allocator does not split off a
 * smaller rest. */
static uint64_t rounded(uint64_t part)
{
	return part > SMALL ? SMALL : 511;
}

/* Bytes of the gathered tensor of which a block of that size can be a part, 0 = none. */
static uint64_t part_of(const struct sizes *gathered, uint64_t size, uint64_t shards)
{
	for (size_t i = gathered->count; i > 0; i--) {
		uint64_t whole = gathered->items[i - 1].size, part = whole / shards;

		if (whole % shards == 0 && part <= size && size - part <= rounded(part))
			return whole;
	}
	return 0;
}

/* Bytes in blocks without a leaf that are parts of gathered leaves. */
static uint64_t parts(const struct collect *c, uint64_t shards)
{
	return SUM_OF(x, c->bare.items, c->bare.count,
		      part_of(&c->gathered, x->size, shards) ? x->size * x->count : 0);
}

/* The number of shards, if parameters that autograd never sees and leaves that are not kept are
 * parts of a whole, by the same fraction for nearly all of them. Returns the smallest such
 * number. */
static uint64_t shards_of(const struct collect *c)
{
	const struct sizes *bare = &c->bare, *gathered = &c->gathered;
	uint64_t all = SUM_OF(x, bare->items, bare->count, x->size * x->count), largest;

	if (gathered->count < 2 || !all)
		return 1;
	largest = gathered->items[gathered->count - 1].size;
	for (uint64_t n = 2; n <= SHARDS_MOST && n <= largest; n++)
		if (largest % n == 0 && parts(c, n) > all / 10 * 9)
			return n;
	return 1;
}

/* Adds blocks without tensors: as shards of a gathered tensor, or else with their own size. */
static void add_bare(struct shape *out, struct collect *c)
{
	uint64_t shards = shape_get(out, SHAPE_SHARDS);

	for (size_t i = 0; i < c->bare.count; i++) {
		uint64_t size = c->bare.items[i].size, n = c->bare.items[i].count;
		uint64_t whole = shards > 1 ? part_of(&c->gathered, size, shards) : 0;

		out->exact += (whole ? whole / shards : size) * n;
		out->trainable += (whole ? whole / shards : 0) * n;
		for (uint64_t k = 0; whole && k < n; k++)
			sizes_add(&c->whole, whole);
	}
}

void shape_find(struct shape *out, const struct step *step, const struct extent *forward,
		const struct snapshot *end, const struct snapshot *rest, uint64_t state,
		const double given[SHAPE_FIGURES])
{
	struct collect c = { .device = end->moment.device };

	*out = (struct shape){ 0 };
	for (int f = 0; f < SHAPE_FIGURES; f++)
		shape_set(out, f, given[f], FIGURE_GIVEN);
	take_tensors(&c, &end->model->tensors);
	take_saved(&c, end, step, forward);
	match(out, &c, rest);
	shape_set(out, SHAPE_SHARDS, shards_of(&c), FIGURE_INFERRED);
	add_bare(out, &c);
	shape_infer(out, &c.whole, &c.saved, out->exact, state);
	free(c.tensors);
	free(c.stays);
	free(c.saved.items);
	free(c.whole.items);
	free(c.bare.items);
	free(c.gathered.items);
}

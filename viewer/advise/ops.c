/* SPDX-License-Identifier: Apache-2.0 */
#include "advise.h"

enum made scores_made_by(const char *op)
{
	static const struct {
		const char *word;
		enum made made;
	} known[] = { { "log_softmax", MADE_OTHER }, { "softmax", MADE_SOFTMAX },
		      { "baddbmm", MADE_PRODUCT },   { "bmm", MADE_PRODUCT },
		      { "matmul", MADE_PRODUCT },    { "einsum", MADE_PRODUCT },
		      { "dropout", MADE_BETWEEN },   { "masked_fill", MADE_BETWEEN },
		      { "add", MADE_BETWEEN },	     { "mul", MADE_BETWEEN },
		      { "div", MADE_BETWEEN },	     { "to", MADE_BETWEEN },
		      { "where", MADE_BETWEEN },     { "empty", MADE_BETWEEN } };

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (strstr(op, known[i].word))
			return known[i].made;
	return MADE_OTHER;
}

bool scores_alike(uint64_t a, uint64_t b)
{
	uint64_t near = (2u << 20) + (a < b ? a : b) / 50;

	return (a > b ? a - b : b - a) < near || (a > 2 * b ? a - 2 * b : 2 * b - a) < near ||
	       (b > 2 * a ? b - 2 * a : 2 * a - b) < near;
}

const struct op *ops_find(struct advise *a, const struct advised *l)
{
	struct timeline *t = a->timeline;
	struct ops *o = &a->ops;
	struct block b;
	struct op *op;
	uint32_t *at;
	bool fresh;

	advise_block(a, l, &b);
	at = map_put(&o->known, (uint64_t)b.stack << 32 | b.name, &fresh);
	if (!fresh)
		return o->items[*at];
	*at = (uint32_t)o->count;
	op = need_new(sizeof(*op));
	op->owner = owners_find(&t->owners, &b);
	if (b.name && stage_is_backward(l->born->stage)) {
		snprintf(op->name, sizeof(op->name), "%s", defs_string(t->model.defs, b.name).s);
	} else {
		instant_operator(&t->stacks, b.stack, b.seq, op->name, sizeof(op->name));
		op->at = t->stacks.python_count ? t->stacks.python[0] : 0;
	}
	*need_item(o->items, o->count, o->room) = op;
	return op;
}

bool ops_is_cast(const char *name)
{
	return !strncmp(name, "to_", 3) || strstr(name, "_to_copy");
}

bool ops_is_product(const char *name)
{
	return strstr(name, "linear") || strstr(name, "mm") || strstr(name, "matmul");
}

bool ops_is_loss(const struct op *op)
{
	return strstr(op->name, "log_softmax") || strstr(op->name, "cross_entropy");
}

void ops_free(struct ops *o)
{
	for (size_t i = 0; i < o->count; i++)
		free(o->items[i]);
	free(o->items);
	map_free(&o->known);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "pickle_copy.h"

#include <stdlib.h>

#include "../base/need.h"

#define DEPTH 100
#define OPEN  UINT32_MAX /* it is being written: who meets it there is inside of it */

void pickle_copy_start(struct pickle_copy *c, const struct pickle *from, struct pickler *to)
{
	*c = (struct pickle_copy){ .from = from, .to = to };
	c->uses = need_new((from->count + 1) * sizeof(*c->uses));
	for (size_t i = 0; i < from->count; i++) {
		const struct pickle_value *v = &from->values[i];
		size_t n = v->type == PICKLE_LIST   ? v->count
			   : v->type == PICKLE_DICT ? 2 * (size_t)v->count
						    : 0;

		for (size_t k = 0; k < n; k++)
			c->uses[v->items[k]]++;
	}
	c->uses[from->root]++;
}

void pickle_copy_end(struct pickle_copy *c)
{
	free(c->uses);
	map_free(&c->kept);
}

static void copy_list(struct pickle_copy *c, const struct pickle_value *v)
{
	pickler_list(c->to);
	for (uint32_t i = 0; i < v->count; i++) {
		pickler_next(c->to, i);
		pickle_copy(c, pickle_item(c->from, v, i));
	}
	pickler_list_end(c->to, v->count);
}

static void copy_tuple(struct pickle_copy *c, const struct pickle_value *v)
{
	if (v->count > 3)
		pickler_mark(c->to);
	for (uint32_t i = 0; i < v->count; i++)
		pickle_copy(c, pickle_item(c->from, v, i));
	pickler_tuple(c->to, v->count);
}

static void copy_dict(struct pickle_copy *c, const struct pickle_value *v)
{
	pickler_dict(c->to);
	for (size_t i = 0; i < 2 * (size_t)v->count; i++)
		pickle_copy(c, pickle_at(c->from, v->items[i]));
	pickler_dict_end(c->to);
}

static void copy_holder(struct pickle_copy *c, const struct pickle_value *v)
{
	uint64_t id = (uint64_t)(v - c->from->values);
	const uint32_t *at = map_get(&c->kept, id);
	bool fresh;

	if (at && *at != OPEN) {
		pickler_again(c->to, *at);
		return;
	}
	if (at || c->depth >= DEPTH) {
		pickler_none(c->to);
		return;
	}
	if (c->uses[id] > 1)
		*map_put(&c->kept, id, &fresh) = OPEN;
	c->depth++;
	if (v->type == PICKLE_DICT)
		copy_dict(c, v);
	else if (v->form == PICKLE_TUPLE)
		copy_tuple(c, v);
	else
		copy_list(c, v);
	c->depth--;
	if (c->uses[id] > 1)
		*map_put(&c->kept, id, &fresh) = pickler_keep(c->to);
}

void pickle_copy(struct pickle_copy *c, const struct pickle_value *v)
{
	switch (v->type) {
	case PICKLE_BOOL:
		pickler_bool(c->to, v->number);
		return;
	case PICKLE_INT:
		if (v->form == PICKLE_BEYOND)
			pickler_beyond(c->to, (uint64_t)v->number);
		else
			pickler_int(c->to, v->number);
		return;
	case PICKLE_FLOAT:
		pickler_float(c->to, v->real);
		return;
	case PICKLE_TEXT:
		if (v->form == PICKLE_BYTES)
			pickler_text(c->to, v->text, v->count);
		else
			pickler_utf8(c->to, v->text, v->count);
		return;
	case PICKLE_LIST:
	case PICKLE_DICT:
		copy_holder(c, v);
		return;
	default:
		pickler_none(c->to);
	}
}

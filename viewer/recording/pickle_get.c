/* SPDX-License-Identifier: Apache-2.0 */
/* Questions to what a pickle held: answered with nothing where the question does not fit. */
#include <string.h>

#include "pickle.h"

#define LOOK_BACK 64

const struct pickle_value *pickle_at(const struct pickle *p, uint32_t ref)
{
	return &p->values[ref];
}

const struct pickle_value *pickle_item(const struct pickle *p, const struct pickle_value *v,
				       uint32_t i)
{
	return v && v->type == PICKLE_LIST && i < v->count ? &p->values[v->items[i]] : NULL;
}

bool pickle_is(const struct pickle_value *text, const char *s)
{
	size_t len = strlen(s);

	return text && text->type == PICKLE_TEXT && text->count == len &&
	       !memcmp(text->text, s, len);
}

const struct pickle_value *pickle_get(const struct pickle *p, const struct pickle_value *dict,
				      const char *key)
{
	uint32_t least;

	if (!dict || dict->type != PICKLE_DICT)
		return NULL;
	least = dict->count > LOOK_BACK ? dict->count - LOOK_BACK : 0;
	for (size_t i = dict->count; i-- > least;)
		if (pickle_is(&p->values[dict->items[2 * i]], key))
			return &p->values[dict->items[2 * i + 1]];
	return NULL;
}

static const struct pickle_value *typed(const struct pickle_value *v, unsigned type)
{
	return v && v->type == type ? v : NULL;
}

uint64_t pickle_number(const struct pickle *p, const struct pickle_value *dict, const char *key)
{
	const struct pickle_value *v = pickle_get(p, dict, key);

	return v && (v->type == PICKLE_INT || v->type == PICKLE_BOOL) ? (uint64_t)v->number : 0;
}

const struct pickle_value *pickle_text(const struct pickle *p, const struct pickle_value *dict,
				       const char *key)
{
	return typed(pickle_get(p, dict, key), PICKLE_TEXT);
}

const struct pickle_value *pickle_list(const struct pickle *p, const struct pickle_value *dict,
				       const char *key)
{
	return typed(pickle_get(p, dict, key), PICKLE_LIST);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "layers.h"

#include <stdlib.h>
#include <string.h>

#include "../base/need.h"
#include "../base/sorted.h"

bool layers_is_container(const char *function)
{
	return !strncmp(function, "Sequential.", 11) || !strncmp(function, "ModuleList.", 11);
}

static uint64_t layer_of(const struct site_path *p)
{
	size_t i = p->count > 1;

	while (i + 1 < p->count && layers_is_container(p->items[i].function))
		i++;
	return p->items[i].key;
}

void layers_note(struct layers *s, const struct site_path *p, const struct advised *l)
{
	uint64_t key = layer_of(p);

	if (s->count && key == s->key && l->stack != s->stack && l->born->forwards == s->pass)
		return;
	*need_item(s->begins, s->count, s->room) = l->from;
	s->key = key;
	s->stack = l->stack;
	s->pass = l->born->forwards;
}

uint64_t layers_after_next(const struct layers *s, uint64_t seq)
{
	size_t next = SORTED_FIRST(s->count, i, s->begins[i] <= seq);

	return next + 2 < s->count ? s->begins[next + 2] : PLAN_END;
}

void layers_free(struct layers *s)
{
	free(s->begins);
	*s = (struct layers){ 0 };
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "advise.h"

#include "../base/bytes.h"
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

static void note_layer(struct layers *s, const struct site_path *p, const struct advised *l)
{
	uint64_t key = layer_of(p);

	if (s->count && key == s->key && l->stack != s->stack && l->born->forwards == s->pass)
		return;
	*need_item(s->begins, s->count, s->room) = l->from;
	s->key = key;
	s->stack = l->stack;
	s->pass = l->born->forwards;
}

/* Lives come in order of birth, so layers do, too. */
static void find_layers(struct advise *a)
{
	a->layers.found = true;
	ADVISE_EACH (a, UINT16_MAX, l) {
		struct site_path p = { 0 };

		if (l.born->stage == STAGE_FORWARD)
			p = sites_find(a, l.stack);
		if (p.count)
			note_layer(&a->layers, &p, &l);
	}
}

uint64_t layers_after_next(struct advise *a, uint64_t seq)
{
	const struct layers *s = &a->layers;
	size_t next;

	if (!s->found)
		find_layers(a);
	next = SORTED_FIRST(s->count, i, s->begins[i] <= seq);
	return next + 2 < s->count ? s->begins[next + 2] : PLAN_END;
}

static uint64_t mix(uint64_t h, const char *s)
{
	return bytes_hash(bytes_hash(h, s, strlen(s)), "\xff", 1);
}

static struct site_path read_path(struct stacks *s, uint32_t stack)
{
	uint64_t path = BYTES_HASH, outside = BYTES_HASH, line = 0;
	struct site_of_stack *items = NULL;
	size_t count = 0, room = 0;

	stacks_read_python(s, stack);
	for (size_t i = s->count; i-- > 0;) {
		const struct frame *f = &s->frames[i];

		if (owners_is_forward(f->function)) {
			path += count ? 0 : line;
			*need_item(items, count, room) =
				(struct site_of_stack){ mix(path, f->function), f->function,
							f->line, outside };
		}
		outside = mix(mix(outside, f->function), f->file) + f->line;
		path = mix(mix(path, f->function), f->file) + (count ? f->line : 0);
		if (!count && !strstr(f->function, "_call_impl"))
			line = f->line;
	}
	return (struct site_path){ items, count };
}

struct site_path sites_find(struct advise *a, uint32_t stack)
{
	struct sites *s = &a->sites;
	uint32_t at = map_number(&s->known, stack, s->count);

	if (at == s->count)
		*need_item(s->paths, s->count, s->room) = read_path(&a->timeline->stacks, stack);
	return s->paths[at];
}

bool sites_has(struct advise *a, uint32_t stack, uint64_t key)
{
	struct site_path p = sites_find(a, stack);

	return ANY_OF(x, p.items, p.count, x->key == key);
}

void sites_free(struct sites *s)
{
	for (size_t i = 0; i < s->count; i++)
		free((void *)s->paths[i].items);
	free(s->paths);
	map_free(&s->known);
}

const char *sites_class(const char *function, char *buf, size_t room)
{
	const char *end = strrchr(function, '.'), *start = end ? end : function;

	while (start > function && start[-1] != '.')
		start--;
	snprintf(buf, room, "%.*s", (int)(end ? end - start : (long)strlen(start)), start);
	return buf;
}

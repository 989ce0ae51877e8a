/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Call paths of one recording: functions, lines and paths, each once. Frames of the framework are
 * left out, but for the names of the two that say what a line called. Nothing here knows the other
 * recording.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../base/need.h"
#include "../moments/instant.h"
#include "diff_side.h"

static uint32_t function_of_site(struct diff_side *s, const struct frame *f)
{
	uint64_t key = map_hash_text(map_hash_text(f->first_line, f->file), f->function);
	uint32_t at = map_number(&s->function_ids, key, s->function_count);

	if (at == s->function_count)
		*need_item(s->functions, s->function_count, s->function_room) =
			(struct diff_function){ f->file, f->function, f->first_line, 0 };
	return at;
}

/* "x" of "x = f(y)", "x +" of "x += y", "return f" of "return f(y)". */
static size_t target_length(const char *text)
{
	size_t at = strcspn(text, "=([");

	while (at && text[at - 1] == ' ')
		at--;
	return at;
}

static void learn_statement(const struct diff_side *s, struct diff_place *p, const struct frame *f)
{
	const struct defs_source *source = defs_source(&s->recording.defs, f->file, f->line);

	if (!source || !source->text.len)
		return;
	p->text = map_hash(1, source->text.s, source->text.len);
	p->target = map_hash(2, source->text.s, target_length(source->text.s));
}

static uint32_t place_of_site(struct diff_side *s, const struct frame *f)
{
	uint32_t function = function_of_site(s, f);
	uint32_t at = map_number(&s->place_ids, (uint64_t)function << 32 | f->line, s->place_count);

	if (at < s->place_count)
		return at;
	*need_item(s->places, s->place_count, s->place_room) =
		(struct diff_place){ .function = function, .line = f->line };
	learn_statement(s, &s->places[at], f);
	return at;
}

static void add_token(struct diff_place *p, const char *name)
{
	uint64_t token = map_hash_text(0, name);

	for (unsigned i = 0; i < p->token_count; i++)
		if (p->tokens[i] == token)
			return;
	if (p->token_count < DIFF_TOKENS)
		p->tokens[p->token_count++] = token;
}

/* "Net/Block" of the forward methods on the path. */
static char *module_path(const struct diff_side *s, const struct diff_site *site)
{
	char text[512];
	size_t len = 0;

	for (unsigned i = 0; i < site->depth; i++) {
		const char *name = s->functions[s->places[site->places[i]].function].name;
		const char *dot = strrchr(name, '.'), *start = name;

		if (!owners_is_forward(name))
			continue;
		for (const char *p = name; p < dot; p++)
			if (*p == '.')
				start = p + 1;
		len += snprintf(text + len, sizeof(text) - len, "%s%.*s", len ? "/" : "",
				(int)(dot - start > 60 ? 60 : dot - start), start);
		if (len > sizeof(text) - 80)
			break;
	}
	return need_copy(text, len);
}

/* Every line calls the next one; the innermost calls the framework. */
static void learn_calls(struct diff_side *s, const struct diff_site *site)
{
	for (unsigned i = 0; i < site->depth; i++) {
		struct diff_place *p = &s->places[site->places[i]];

		if (i + 1 < site->depth) {
			add_token(p, s->functions[s->places[site->places[i + 1]].function].name);
			continue;
		}
		/* A line that calls a function in C directly is known by its operator alone. */
		add_token(p, site->op[0] ? site->outer : site->operator);
		add_token(p, site->op[0] ? site->op : site->operator);
	}
}

static struct diff_site read_path(struct diff_side *s, const struct block *b)
{
	struct diff_site site = { .outer = "", .op = "" };
	struct stacks *st = &s->timeline.stacks;
	char operator[64];
	size_t inner = 0;

	instant_operator(st, b->stack, b->seq, operator, sizeof(operator));

	site.owner = owners_find(&s->timeline.owners, b);
	site.signs = model_signs(&s->timeline.model, b->stack);
	stacks_read_python(st, b->stack);
	site.operator= need_copy(operator, st->count ? strlen(operator) : 0);
	if (!st->count) {
		site.op = site.owner.function;
		return site;
	}
	while (inner < st->count && owners_is_plumbing(st->frames[inner].file))
		inner++;
	if (inner)
		site.op = st->frames[0].function;
	if (inner)
		site.outer = st->frames[inner - 1].function;
	site.places = need_new((st->count + 1) * sizeof(*site.places));
	for (size_t i = st->count; i-- > inner;)
		if (!owners_is_plumbing(st->frames[i].file))
			site.places[site.depth++] = place_of_site(s, &st->frames[i]);
	return site;
}

static uint64_t hash_site(const struct diff_site *site)
{
	uint64_t h = map_hash(1, site->places, site->depth * sizeof(*site->places));

	h = map_hash_text(map_hash_text(h, site->op), site->owner.function);
	return map_hash_text(h, site->operator);
}

static uint32_t make_site(struct diff_side *s, const struct block *b)
{
	struct diff_site site = read_path(s, b);
	uint32_t at = map_number(&s->site_ids, hash_site(&site), s->site_count);

	if (at < s->site_count) {
		free(site.places);
		free(site.operator);
		return at;
	}
	site.module = module_path(s, &site);
	site.caller = owners_caller(&s->timeline.owners, b->stack);
	learn_calls(s, &site);
	*need_item(s->sites, s->site_count, s->site_room) = site;
	return at;
}

uint32_t diff_site_find(struct diff_side *s, const struct block *b)
{
	uint64_t key = (uint64_t)b->stack << 32 | (b->memory ? 0 : b->name);
	uint32_t *known = map_get(&s->stack_ids, key), site;
	struct diff_site *found;

	site = known ? *known : make_site(s, b);
	if (!known)
		*map_put(&s->stack_ids, key, NULL) = site;
	found = &s->sites[site];
	if (found->depth) {
		struct diff_place *p = &s->places[found->places[found->depth - 1]];

		p->largest = b->size > p->largest ? b->size : p->largest;
	}
	return site;
}

void diff_sites_free(struct diff_side *s)
{
	for (size_t i = 0; i < s->site_count; i++) {
		free(s->sites[i].places);
		free(s->sites[i].module);
		free(s->sites[i].operator);
	}
	free(s->sites);
	free(s->places);
	free(s->functions);
	map_free(&s->function_ids);
	map_free(&s->place_ids);
	map_free(&s->site_ids);
	map_free(&s->stack_ids);
}

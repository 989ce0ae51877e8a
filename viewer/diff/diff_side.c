/* SPDX-License-Identifier: Apache-2.0 */
/* One recording of a comparison: opens it, finds its peak and phases, takes the blocks alive at a
 * moment. */
#include "diff_side.h"

#include "../answers/used.h"
#include "../base/sorted.h"
#include "../moments/timeline.h"

/*
 * Call paths of one recording: functions, lines and paths, each once. Frames of the framework are
 * left out, except for the names of two, which show what a line called. Nothing here depends on the
 * other recording.
 */

static uint32_t function_of_site(struct diff_side *s, const struct frame *f)
{
	uint64_t key = map_hash_text(map_hash_text(f->first_line, f->file), f->function);
	uint32_t at = map_number(&s->function_ids, key, s->function_count);

	if (at == s->function_count)
		*need_item(s->functions, s->function_count, s->function_room) =
			(struct diff_function){ .file = f->file,
						.name = f->function,
						.first_line = f->first_line };
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
	struct diff_function *of = &s->functions[function];

	if (at < s->place_count)
		return at;
	*need_item(s->places, s->place_count, s->place_room) =
		(struct diff_place){ .function = function, .line = f->line };
	*need_item(of->places, of->count, of->room) = at;
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

static uint32_t make_site(struct diff_side *s, const struct block *b)
{
	struct diff_site site = read_path(s, b);
	uint64_t h = map_hash(1, site.places, site.depth * sizeof(*site.places));
	char module[512];
	uint32_t at;

	h = map_hash_text(map_hash_text(h, site.op), site.owner.function);
	at = map_number(&s->site_ids, map_hash_text(h, site.operator), s->site_count);

	if (at < s->site_count) {
		free(site.places);
		free(site.operator);
		return at;
	}
	site.module =
		need_text(owners_module_path(&s->timeline.stacks, true, module, sizeof(module)));
	site.caller = owners_caller(&s->timeline.owners, b->stack);
	learn_calls(s, &site);
	*need_item(s->sites, s->site_count, s->site_room) = site;
	return at;
}

/* The call path of a block. */
static uint32_t diff_site_find(struct diff_side *s, const struct block *b)
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

static void diff_sites_free(struct diff_side *s)
{
	for (size_t i = 0; i < s->site_count; i++) {
		free(s->sites[i].places);
		free(s->sites[i].module);
		free(s->sites[i].operator);
	}
	for (size_t i = 0; i < s->function_count; i++)
		free(s->functions[i].places);
	free(s->sites);
	free(s->places);
	free(s->functions);
	map_free(&s->function_ids);
	map_free(&s->place_ids);
	map_free(&s->site_ids);
	map_free(&s->stack_ids);
}

static bool find_recompute(struct diff_side *s)
{
	const struct map *nodes = &s->recording.defs.nodes.ids;
	struct signs signs;
	bool found = false;

	signs_init(&signs, &s->recording.defs);
	for (size_t i = 0; i < nodes->room && !found; i++)
		if (nodes->slots[i].used)
			found = signs_find(&signs, (uint32_t)nodes->slots[i].key) & STACK_RECOMPUTE;
	signs_free(&signs);
	return found;
}

int diff_side_open(struct diff_side *s, const char *path, long device)
{
	const struct defs_text *strings;
	const struct curve *curve;
	int rc;

	*s = (struct diff_side){ 0 };
	rc = recording_open(&s->recording, path);
	if (rc)
		return rc;
	rc = timeline_open(&s->timeline, &s->recording, device);
	if (rc) {
		recording_close(&s->recording);
		return rc;
	}
	curve = model_curve(&s->timeline.model.devices[s->timeline.device]);
	s->peak = curve->peak.bytes;
	s->peak_seq = curve->peak.event.seq;
	if (s->timeline.framework)
		reserved_find(&s->reserved, &s->timeline, s->timeline.device);
	s->recomputes = find_recompute(s);
	strings = s->recording.defs.strings.items;
	s->casts = ANY_OF(x, strings, s->recording.defs.strings.count,
			  !strcmp(x->s, "ToCopyBackward0")); /* the backward node of a cast */
	s->compiled = defs_has_file(&s->recording.defs, "torch/_functorch/_aot_autograd/");
	return 0;
}

void diff_side_close(struct diff_side *s)
{
	diff_shot_free(&s->at_peak);
	diff_shot_free(&s->shot);
	leaks_free(&s->leaks);
	diff_sites_free(s);
	timeline_close(&s->timeline);
	recording_close(&s->recording);
}

static struct diff_row *row_of_site(struct diff_shot *shot, unsigned category, uint32_t site)
{
	uint32_t at = map_number(&shot->ids, (uint64_t)category << 32 | site, shot->count);

	if (at == shot->count)
		*need_item(shot->rows, shot->count, shot->room) =
			(struct diff_row){ .category = category, .site = site };
	return &shot->rows[at];
}

/* Whether it was saved for a backward pass, and freed before any came. */
static bool is_unused(const struct model *m, const struct block *b)
{
	return b->category == CATEGORY_activations && b->died_seq &&
	       model_died(m, b)->backwards == model_born(m, b)->backwards;
}

/* Unused results of the passes that use less than half of theirs. In other passes, such results are
 * local variables, which are freed before the backward pass. */
static uint64_t dropped_of(const struct snapshot *snap)
{
	struct pass {
		uint64_t all, unused;
	};
	MAP_OF(struct pass) passes = { .count = 0 };
	uint64_t sum = 0;

	FOR_EACH (const struct block, b, snap->moment.blocks, snap->moment.count) {
		struct pass *of;

		if (b->category != CATEGORY_activations)
			continue;
		of = map_item(&passes, model_born(snap->model, b)->forwards);
		of->all += b->size;
		of->unused += is_unused(snap->model, b) ? b->size : 0;
	}
	FOR_EACH (const struct pass, x, passes.items, passes.count)
		sum += 2 * x->unused > x->all ? x->unused : 0;
	map_items_free(&passes);
	return sum;
}

/* The script's line with the most recent activation. */
static struct owner latest_of(struct diff_side *s, const struct snapshot *snap)
{
	const struct block *latest = GREATEST_OF(b, snap->moment.blocks, snap->moment.count,
						 b->category == CATEGORY_activations &&
							 !model_born(snap->model, b)->in_node,
						 b->seq);
	const struct diff_site *site;

	if (!latest)
		return (struct owner){ .function = "", .file = "" };
	site = &s->sites[diff_site_find(s, latest)];
	return site->caller.file[0] ? site->caller : site->owner;
}

static void add_block(struct diff_shot *out, struct diff_side *s, const struct block *b,
		      bool is_idle)
{
	const struct model *m = &s->timeline.model;
	struct diff_row *row = row_of_site(out, b->category, diff_site_find(s, b));

	if (b->category == CATEGORY_parameters && model_is_leaf(m, b))
		out->trained += b->size;
	row->bytes += b->size;
	row->unused += is_unused(m, b) ? b->size : 0;
	row->idle += is_idle ? b->size : 0;
	row->blocks++;
	row->first_seq = row->first_seq && row->first_seq < b->seq ? row->first_seq : b->seq;
}

static void take_sizes(struct diff_shot *out, struct diff_side *s, const struct snapshot *snap)
{
	size_t *next = need_new((out->count + 1) * sizeof(*next)), at = 0;

	out->sizes = need_new((snap->moment.count + 1) * sizeof(*out->sizes));
	for (size_t i = 0; i < out->count; i++) {
		out->rows[i].sizes = next[i] = at;
		at += out->rows[i].blocks;
	}
	FOR_EACH (const struct block, b, snap->moment.blocks, snap->moment.count) {
		const struct diff_row *row = row_of_site(out, b->category, diff_site_find(s, b));

		out->sizes[next[row - out->rows]++] = b->size;
	}
	for (size_t i = 0; i < out->count; i++)
		if (out->rows[i].blocks > 1)
			qsort(&out->sizes[out->rows[i].sizes], out->rows[i].blocks,
			      sizeof(*out->sizes), sorted_numbers);
	free(next);
}

void diff_shot_take(struct diff_shot *out, struct diff_side *s, uint64_t seq)
{
	struct snapshot snap;
	struct used_up idle;

	snapshot_take(&snap, &s->timeline, seq);
	used_up_models(&idle, &s->timeline, &snap);
	*out = (struct diff_shot){ .seq = seq };
	out->time_ns = snap.moment.time_ns;
	out->total = snap.moment.bytes;
	out->phase = diff_phase_at(s, seq);
	out->step = steps_at(&s->timeline.steps, seq);
	memcpy(out->bytes, snap.bytes, sizeof(out->bytes));
	for (size_t i = 0; i < snap.moment.count; i++) /* what no step used was never trained */
		add_block(out, s, &snap.moment.blocks[i],
			  steps_at(&s->timeline.steps, idle.since[i]) ? idle.since[i] : 0);
	take_sizes(out, s, &snap);
	out->latest = latest_of(s, &snap);
	out->passes = snapshot_passes(&snap, 0, 1u << CATEGORY_activations);
	out->dropped = dropped_of(&snap);
	used_up_free(&idle);
	moment_free(&snap.moment);
}

void diff_shot_free(struct diff_shot *shot)
{
	free(shot->rows);
	free(shot->sizes);
	map_free(&shot->ids);
	*shot = (struct diff_shot){ 0 };
}

enum phase diff_phase_at(const struct diff_side *s, uint64_t seq)
{
	const struct span *span = steps_span(&s->timeline.steps, &s->timeline.model.spans, seq);

	return span ? span->phase : PHASE_SETUP;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Facts about the moment of the refusal. */

#include "../../format/record.h"
#include "../base/arithmetic.h"
#include "../base/sorted.h"
#include "../model/optimizers.h"
#include "../replay/replay_trial.h"
#include "oom.h"

#define GIB (1ull << 30)
#define FEW 50 /* less than 1/FEW of the device might be a larger context */

/* Bytes that PyTorch's allocator requests from the device for the block, the figure of its own
 * error message. */
static uint64_t segment_of(const struct oom *o)
{
	struct replay_own own;
	uint64_t bytes;

	replay_own(&own, o->timeline->model.defs);
	bytes = settings_segment(&own.settings, o->block);
	free(own.conf);
	return bytes;
}

static void find_asked(struct oom *o)
{
	const struct refusal *r = &o->refusal;
	bool whole = r->fail.kind && r->fail.number == GMT_MEM_DEVICE && r->fail.size >= o->block;

	o->block = r->event.size;
	if (r->event.kind != GMT_BLOCK_OOM)
		o->asked = o->block;
	else
		o->asked = whole ? r->fail.size : segment_of(o);
}

static uint64_t within(uint64_t least, uint64_t n, uint64_t most)
{
	return n < least ? least : n > most ? most : n;
}

/* Bytes in use on the device by no recorded call, at the first sample. */
static uint64_t first_context(const struct oom *o)
{
	struct levels_cursor c;

	levels_first(&c, &o->timeline->model.lives.levels);
	for (; c.now; levels_next(&c))
		if (c.now->device == o->timeline->device && c.now->total_bytes)
			return c.now->context;
	return 0;
}

/*
 * Bytes of other processes, at least: the part of o->context that cannot be this program's. At
 * the first sample one context is subtracted. Later growth counts whole if it exceeds what
 * loaded code and the buffers of libraries take (twice as much with NCCL), and if no driver
 * pool might hold it.
 */
static uint64_t others_of(const struct oom *o)
{
	uint64_t own = within(GIB / 2, o->room.total / 8, GIB);
	uint64_t libraries = within(GIB / 4, o->room.total / 8, GIB / 2);
	uint64_t first = within(0, first_context(o), o->context);
	uint64_t since = moment_is_pooled(&o->shot.moment) ? 0 : o->context - first, others;
	struct holders inside = holders_of_libraries(&o->shot.moment, &o->timeline->owners);

	if (o->world > 1 || ANY_OF(x, inside.items, inside.count, strcasestr(x->inside, "nccl")))
		libraries *= 2;
	free(inside.items);
	others = (first > own ? first - own : 0) + (since > libraries ? since : 0);
	return others >= o->room.total / FEW ? others : 0;
}

static void find_room(struct oom *o)
{
	const struct moment *mo = &o->shot.moment;

	o->room = room_at(o->shot.model, mo, model_pool_of_mark(o->shot.model, &o->refusal.event));
	o->pools = private_pools(o->shot.model, mo, &o->timeline->owners);
	o->allocated = mo->bytes;
	o->libraries = mo->driver > o->room.reserved ? mo->driver - o->room.reserved : 0;
	o->context = mo->context;
	o->others = others_of(o);
	o->capacity = o->room.reserved - o->room.apart + o->room.free;
}

/* Fills wanted: the block that the request would have become. */
static void imagine(struct oom *o)
{
	const struct lives_mark *e = &o->refusal.event;
	struct model *m = o->shot.model;

	o->wanted = (struct block){ .size = e->size,
				    .seq = e->seq,
				    .born_ns = e->ns,
				    .stack = e->stack,
				    .thread = e->thread,
				    .device = e->device,
				    .name = e->kind == GMT_BLOCK_OOM ? e->name : 0,
				    .memory = e->kind == GMT_BLOCK_OOM ? 0 : (uint16_t)e->number,
				    .flags = e->flags };
	o->wanted_signs = model_signs(m, e->stack);
	o->wanted_stage = e->stage;
	o->wanted.category =
		(uint16_t)classify_request(timeline_classifier(o->timeline), &o->wanted, e->stage,
					   e->kind == GMT_BLOCK_OOM ? e->number : 0)
			.category;
	o->wanted_owner = owners_find(&o->timeline->owners, &o->wanted);
}

/* The request is for gathering or reducing shards, or for the result of a collective. */
static bool is_collective(struct oom *o)
{
	return o->wanted_signs & (STACK_UNSHARDED | STACK_REDUCED | STACK_COLLECTIVE) ||
	       o->wanted.category == CATEGORY_communication ||
	       stacks_in_file(&o->timeline->stacks, o->refusal.event.stack,
			      ONE_OF("torch/distributed/_functional_collectives.py"));
}

static void find_place(struct oom *o)
{
	const struct lives_mark *e = &o->refusal.event;
	struct timeline *t = o->timeline;
	struct extent x = { .peak_seq = e->seq,
			    .peak_stack = e->stack,
			    .peak_node = e->kind == GMT_BLOCK_OOM ? e->name : 0 };

	instant_of_peak(&o->instant, t, &x);
	o->at_step = t->steps.count ? steps_at(&t->steps, e->seq) : 0;
	o->since_step = oom_since_step(o);
	o->phase = o->instant.phase;
	o->evaluation = oom_evaluation(o);
	o->by_call = oom_by_call(o);
}

/* Weights of a checkpoint that is still held: they were copied on before the first pass after they
 * were read, and no pass has used them. */
static bool is_of_checkpoint(const struct oom *o, const struct block *b)
{
	const struct model *m = o->shot.model;
	uint32_t last = oom_last_use(o, b), pass = oom_pass_at(o, b->seq);

	return b->category == CATEGORY_parameters && model_signs(m, b->stack) & STACK_LOAD &&
	       !model_is_leaf(m, b) && last &&
	       uses_kind(&m->uses, last)->transfer == GMT_TRANSFER_SOURCE &&
	       oom_pass_at(o, oom_work_seq(o, last)) == pass &&
	       oom_pass_at(o, o->refusal.event.seq) > pass;
}

static void sum_up(struct oom *o)
{
	const struct snapshot *s = &o->shot;
	uint64_t backward = oom_latest_backward(o);

	oom_find_copies(o);
	o->loaded = BYTES_OF(b, &s->moment, is_of_checkpoint(o, b));
	oom_find_listed(o);
	o->lasting = classes_sum(s->bytes, OF_THE_MODEL);
	if (o->phase == PHASE_OPTIMIZER)
		o->lasting += s->bytes[CATEGORY_optimizer_temporaries];
	if (oom_only_forward(o))
		o->of_pass = BYTES_OF(b, &s->moment,
				      b->seq >= o->evaluation &&
					      model_born(s->model, b)->stage == STAGE_FORWARD &&
					      model_born(s->model, b)->forwards ==
						      s->model->spans.forwards);
	FOR_BLOCKS (b, &s->moment) {
		uint32_t signs = model_signs(s->model, b->stack);

		if (oom_grows_with_batch(o, b, model_born(s->model, b)->stage)) {
			o->batch[b->category] += b->size;
			o->passing += b->size;
		}
		if (b->category == CATEGORY_gradients && backward && b->seq > backward &&
		    model_born(s->model, b)->stage == STAGE_OUTSIDE)
			o->computed += b->size;
		if (b->category == CATEGORY_parameters && model_is_leaf(s->model, b))
			o->trainable += b->size;
		if (b->category == CATEGORY_optimizer_state &&
		    (model_born(s->model, b)->stage == STAGE_OPTIMIZER ||
		     signs & (STACK_STEP | STACK_STATE)))
			o->state += b->size;
		if (signs & STACK_UNSHARDED ||
		    (b->category == CATEGORY_communication && !(signs & STACK_BUCKET)))
			o->unsharded += b->size;
	}
	o->lasting -= o->computed; /* a script computed them from others between passes */
}

/* Gradients of shards were reduced at some time before, whether or not anything is gathered now. */
static bool is_sharded(const struct oom *o)
{
	const struct row_store *requests = &o->timeline->model.lives.requests;

	for (uint32_t i = 0; i < requests->count; i++) {
		const struct life_request *r = rows_at(requests, i);

		if (r->stack && model_signs(o->shot.model, r->stack) & STACK_REDUCED)
			return true;
	}
	return false;
}

/* Either the request is as large as one parameter of all ranks together, or the line made pieces as
 * large as one rank's parameter, one for each rank. Not in backward, which makes the full gradient
 * of a gathered parameter. */
uint64_t oom_gathered_by_hand(const struct oom *o)
{
	uint64_t pieces;

	if (o->world == 1 || o->phase == PHASE_OPTIMIZER || o->phase == PHASE_BACKWARD)
		return 0;
	pieces = BYTES_OF(b, &o->shot.moment,
			  b->size == o->block && b->category != CATEGORY_parameters &&
				  owners_made(&o->timeline->owners, b, &o->wanted_owner));
	FOR_BLOCKS (b, &o->shot.moment)
		if (b->category == CATEGORY_parameters &&
		    ((b->size == o->block && pieces) ||
		     (b->size * o->world >= o->block && (b->size - 512) * o->world < o->block)))
			return pieces + o->block;
	return 0;
}

/* Fills projected if the refusal came while the first step was making the state. */
static void project_state(struct oom *o)
{
	const struct span *span =
		steps_span(&o->timeline->steps, &o->timeline->model.spans, o->refusal.event.seq);
	char name[OPTIMIZER_NAME];
	uint64_t all;

	if (o->phase != PHASE_OPTIMIZER || !span || o->wanted.category != CATEGORY_optimizer_state)
		return;
	optimizer_name(defs_string(o->timeline->model.defs, span->name).s, name);
	all = optimizer_tensors(name) > 0 ? (uint64_t)optimizer_tensors(name) * o->trainable : 0;
	if (all > o->shot.bytes[CATEGORY_optimizer_state])
		o->projected = all;
}

/* Fills compared from the peak of the latest earlier step that ended. */
static void compare(struct oom *o, struct timeline *t)
{
	struct snapshot before;
	size_t n = o->since_step;

	while (n > 1 && !t->steps.items[n - 1].ended)
		n--;
	oom_find_since(o);
	if (n < 2)
		return;
	snapshot_take(&before, t, t->steps.items[n - 1].extent.peak_seq);
	o->compared_step = n - 1;
	memcpy(o->compared, before.bytes, sizeof(o->compared));
	moment_free(&before.moment);
}

COMPARE(by_bytes, struct variable_at, ORDER(y->variable->head.bytes, x->variable->head.bytes))

static void find_variables(struct oom *o)
{
	const struct lives_mark *e = &o->refusal.event;

	o->variable_count = variables_refused(&o->timeline->stacks, e->stack, e->seq,
					      o->refusal.before, o->variables, OOM_VARIABLES);
	qsort(o->variables, o->variable_count, sizeof(*o->variables), by_bytes);
	o->variables_shown = SUM_OF(x, o->variables, o->variable_count,
				    x->variable->head.bytes >= o->allocated / 1000);
	o->samples = variables_first_size(o->timeline->stacks.defs, e->seq);
}

void oom_look(struct oom *o, struct timeline *t, const struct refusal *refusal)
{
	uint64_t ranks = strtoul(defs_meta(&t->recording->defs, "env.WORLD_SIZE").s, NULL, 10);

	o->refusal = *refusal;
	o->timeline = t;
	snapshot_take(&o->shot, t, refusal->event.seq);
	unclassed_find(&o->unclassed, t, &o->shot);
	o->around = uses_around(&t->model, &o->shot.moment);
	o->works = uses_passed(&t->model, &(struct life_uses){ 0 }, refusal->event.seq);
	o->works -= o->works > 0; /* row 0 is none */
	o->world = ranks > 1 && ranks < 1000000 ? (unsigned)ranks : 1;
	imagine(o);
	find_place(o);
	find_asked(o);
	find_room(o);
	o->collective = is_collective(o);
	o->sharded = is_sharded(o);
	sum_up(o);
	find_variables(o);
	oom_find_rows(o);
	project_state(o);
	oom_left(o);
	compare(o, t);
	oom_find_calls(o);
	oom_find_longer(o);
	leaks_find(&o->leaks, t);
	oom_attempts(o);
	oom_holders(o);
	oom_engine(o);
}

int oom_open(struct oom *o, struct recording *r, uint64_t nth)
{
	struct timeline *t = &o->own;
	struct refusal refusal;
	int rc, device;

	*o = (struct oom){ 0 };
	rc = timeline_open_any(t, r);
	if (rc)
		return rc;
	o->dropped = t->model.dropped;
	o->state_only = moments_state_only(&t->model);
	if (!refusals_find(&refusal, &t->model.lives, nth)) {
		if (!refusal.count && !o->state_only)
			oom_no_plan(t, o->no_plan);
		timeline_close(t);
		return 0;
	}
	device = refusal.event.device < 0 ? 0 : refusal.event.device;
	rc = moments_device(r, &t->model, device, &device);
	if (rc) {
		timeline_close(t);
		return rc;
	}
	if (device != t->device)
		timeline_look(t, device);
	oom_look(o, t, &refusal);
	return 0;
}

void oom_close(struct oom *o)
{
	free(o->holders.items);
	free(o->around);
	map_free(&o->copies);
	map_free(&o->listed);
	map_free(&o->left.blocks);
	leaks_free(&o->leaks);
	used_up_free(&o->unused);
	used_up_free(&o->earlier);
	moment_free(&o->shot.moment);
	if (o->timeline == &o->own)
		timeline_close(&o->own);
}

uint64_t oom_missing(const struct oom *o)
{
	if (o->refusal.event.kind == GMT_BLOCK_OOM && !o->refusal.fail.kind)
		return o->asked;
	if (o->projected > o->shot.bytes[CATEGORY_optimizer_state])
		return o->projected - o->shot.bytes[CATEGORY_optimizer_state];
	return o->asked > o->room.free ? o->asked - o->room.free : o->asked;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The changes that would have made the request fit, from oom_requests.c and from `advise` at that
 * moment, in the order in which a person would try them. */

#include "../advise/advise.h"
#include "oom.h"

enum cost { CODE, TRADE, CARDS, GENERAL = 4, IF = 8 };
enum about { NOTHING, STEP, SCORES, STATE, PASS, IDLE, KEPT, RESULT, CASTS, ONE_BY_ONE, EACH };

/* A row of the table. A finding without a row has its kind as name. */
struct remedy_row {
	const char *name, *kind;
	remedy_fn *test;
	unsigned causes;
	unsigned cost; /* enum cost | GENERAL | IF */
	enum about about;
};

#define FOR(cause) (1u << CAUSE_##cause)

static const struct remedy_row table[] = {
#define REMEDY(name, ...)      { #name, NULL, remedy_##name, __VA_ARGS__ },
#define FOUND(kind, name, ...) { #name, #kind, NULL, __VA_ARGS__ },
#include "oom_remedies.def"
#undef REMEDY
#undef FOUND
};

#define ROWS (sizeof(table) / sizeof(table[0]))

static const struct remedy_row *row_of(const char *name)
{
	static const struct remedy_row none = { 0 };
	const struct remedy_row *row = FIRST_OF(x, table, ROWS, !strcmp(x->name, name));

	return row ? row : &none;
}

bool oom_remedy_is_general(const char *name)
{
	return row_of(name)->cost & GENERAL;
}

/* Whether the request would fit with so many bytes less. A library sizes its request by the free
 * memory, so with another setting it might have requested more. */
static bool is_enough(const struct oom *o, remedy_fn *test, uint64_t saves)
{
	if (test == remedy_smaller_cache &&
	    o->engine.wanted) /* more requests for the cache might have followed */
		return false;
	if (test == remedy_less_workspace)
		return o->settings.less_workspace;
	if (saves && test == remedy_allocator && oom_is_up_to_the_library(o))
		return o->settings.fits->outcome.bytes >= o->block / 4;
	return saves >= oom_missing(o);
}

struct remedy_list {
	const struct oom *oom;
	enum oom_cause cause;
	struct oom_remedy *items;
	size_t count;
};

static const struct claim claims[] = {
#include "claims.def"
};

/* The order of remedies: answers to the cause first, then code before devices, sufficient ones,
 * free ones. */
static unsigned rank_of(const struct oom_remedy *r)
{
	unsigned cost = row_of(r->name)->cost & ~(unsigned)(GENERAL | IF);

	return 8 * !r->answers + 4 * (cost == CARDS) + 2 * !r->enough + (cost == TRADE);
}

static void leave_out(struct remedy_list *list, struct oom_remedy *r)
{
	memmove(r, r + 1, (size_t)(list->items + --list->count - r) * sizeof(*r));
}

/* Another remedy is about the same memory, and only one of the two is listed. */
static bool is_twin(struct remedy_list *list, const struct oom_remedy *r)
{
	const struct remedy_row *row = row_of(r->name), *other;
	struct oom_remedy *x;

	if (row->about < IDLE)
		return false;
	x = FIRST_OF(i, list->items, list->count, row_of(i->name)->about == row->about);
	other = x ? row_of(x->name) : NULL;
	if (x && r->depends && !x->depends && x->saves >= r->saves / 2)
		return true;
	if (x && x->depends && !r->depends && r->saves >= x->saves / 2) {
		leave_out(list, x);
		return false;
	}
	if (x && (row < other ? x->saves / 5 > r->saves / 4 : x->saves / 4 >= r->saves / 5))
		return true;
	if (x)
		leave_out(list, x);
	return false;
}

/* The answer to the cause frees the same memory. */
static bool is_of_answer(const struct remedy_list *list, const struct oom_remedy *r)
{
	const struct oom *o = list->oom;
	enum about about = row_of(r->name)->about;

	if (about == STATE)
		return list->cause == CAUSE_held_unused &&
		       o->unused.classes[CATEGORY_optimizer_state] >=
			       o->shot.bytes[CATEGORY_optimizer_state] / 2;
	if (about == PASS)
		return o->attempts.bytes;
	/* One operator's result might not grow with the batch; computing it in pieces is the better
	 * advice. */
	if (about == STEP && list->cause == CAUSE_activation_spike && o->spike.bytes >= r->saves &&
	    ANY_OF(x, list->items, list->count, !strcmp(x->name, "in_pieces")))
		return true;
	return (about == STEP || about == SCORES) && o->grown + o->attempts.bytes &&
	       r->saves > o->current + oom_asked_for_batch(o);
}

/* Inserts in order. */
static void insert(struct remedy_list *list, struct oom_remedy *r)
{
	size_t n;

	r->answers = row_of(r->name)->causes & 1u << list->cause;
	r->claim = claim_of(claims, sizeof(claims) / sizeof(*claims), r->name);
	claim_say(&r->claim, r->how, OOM_TEXT);
	if ((r->saves < list->oom->capacity / 200 && !r->enough) || list->count == OOM_REMEDIES ||
	    is_of_answer(list, r) || is_twin(list, r))
		return;
	for (n = list->count++; n; n--) {
		const struct oom_remedy *before = &list->items[n - 1];

		if (rank_of(before) != rank_of(r) ? rank_of(before) < rank_of(r)
						  : before->saves >= r->saves)
			break;
		list->items[n] = *before;
	}
	list->items[n] = *r;
}

/* State that the optimizer's first step would make after its temporaries: at least one tensor for
 * each weight (SGD with momentum). */
static uint64_t state_to_come(const struct oom *o, const struct finding *f)
{
	uint64_t state = o->shot.bytes[CATEGORY_optimizer_state];
	bool temporaries = !strcmp(f->kind, "fused_optimizer") || !strcmp(f->kind, "foreach_off");

	return temporaries && o->phase == PHASE_OPTIMIZER && o->since_step < 2 &&
			       state < o->trainable
		       ? o->trainable - state
		       : 0;
}

/* With the change memory would not have run out earlier either. The allocator would have cached
 * other segments, so there must be room for one more. */
static bool fits_before(const struct oom *o, const struct finding *f)
{
	enum { SEGMENT = 20 << 20 }; /* bytes of a segment for blocks of 1 to 10 MiB */

	return !o->room.sampled || f->peak + SEGMENT <= o->capacity;
}

static void insert_found(struct remedy_list *list, const struct finding *f)
{
	uint64_t missing = oom_missing(list->oom) + list->oom->block + state_to_come(list->oom, f);
	const struct remedy_row *row =
		FIRST_OF(x, table, ROWS, x->kind && !strcmp(x->kind, f->kind));
	/* The lower end of a range, if that is a bound. */
	bool least = f->least && f->least < f->saves && !f->about;
	bool upper = least || !f->least;
	struct oom_remedy r = { .name = row ? row->name : f->kind,
				.saves = least ? f->least : f->saves,
				.at_most = !f->least,
				.depends = row && row->cost & IF,
				.enough = f->least >= missing && fits_before(list->oom, f) };

	oom_say(r.what, "%s", f->what);
	oom_say(r.how, "%s", f->how);
	if (f->owner.function)
		text_add(r.what, OOM_TEXT, " (%s)", WHO(&f->owner));
	if (strcmp(B(f->least), B(f->saves)) && !(row && row->cost & IF))
		text_add(r.how, OOM_TEXT, ". Saves %s %s", upper ? "up to" : "at least",
			 B(upper ? f->saves : f->least));
	insert(list, &r);
}

/* Results of each pass are kept, and the request is for one of them, so each of its pieces would
 * stay. */
static void leave_pieces(struct remedy_list *list, const struct advise *a)
{
	const struct owner *asked = &list->oom->wanted_owner;

	if (!ANY_OF(f, a->items, a->count,
		    !strcmp(f->kind, "gathered") && owners_same(&f->owner, asked)))
		return;
	for (size_t i = list->count; i-- > 0;)
		if (!strcmp(list->items[i].name, "in_pieces"))
			leave_out(list, &list->items[i]);
}

/* Starts advise at the refusal, with the requested block and the state that the optimizer's first
 * step would have made after it. */
static void ask(struct advise *a, const struct oom *o, struct position *born)
{
	const uint64_t state = o->shot.bytes[CATEGORY_optimizer_state] +
			       (o->wanted.category == CATEGORY_optimizer_state ? o->block : 0);
	struct advised wanted[] = {
		{ .stack = o->wanted.stack,
		  .name = o->wanted.name,
		  .born = &born[0],
		  .size = o->block,
		  .from = o->wanted.seq,
		  .classes = 1u << o->wanted.category },
		{ .born = &born[1],
		  .size = o->projected > state ? o->projected - state : 0,
		  .from = o->wanted.seq,
		  .classes = CLASS_BIT(optimizer_state) },
	};

	born[0] = (struct position){ .stage = (uint8_t)o->wanted_stage,
				     .forwards = o->shot.model->spans.forwards,
				     .device = o->timeline->device,
				     .counts = true };
	born[1] = born[0];
	born[1].stage = STAGE_OPTIMIZER;
	advise_refused(a, o->timeline, wanted, wanted[1].size ? 2 : 1, o->allocated,
		       oom_missing(o));
}

size_t oom_remedies(struct oom *o, enum oom_cause cause, struct oom_remedy out[OOM_REMEDIES])
{
	struct remedy_list list = { .oom = o, .cause = cause, .items = out };
	struct position born[ADVISE_WANTED];
	struct advise a;

	ask(&a, o, born);
	o->no_backward = a.no_backward;
	for (size_t i = 0; i < ROWS; i++) {
		struct oom_remedy r = { .name = table[i].name, .depends = table[i].cost & IF };

		if (table[i].test)
			r.saves = table[i].test(o, r.what, r.how);
		r.at_most = table[i].test == remedy_smaller_batch && !oom_is_of_samples(o);
		r.enough = !r.at_most && is_enough(o, table[i].test, r.saves);
		if (r.saves)
			insert(&list, &r);
	}
	leave_pieces(&list, &a);
	for (size_t i = 0; i < a.count; i++)
		insert_found(&list, &a.items[i]);
	advise_close(&a);
	/* in an evaluation those about optimizer state have to be sufficient */
	for (size_t i = list.count; o->evaluation && i-- > 0;)
		if (row_of(out[i].name)->about == STATE && !out[i].enough)
			leave_out(&list, &out[i]);
	FOR_EACH (struct oom_remedy, r, out, list.count) { /* ordered as if the condition holds */
		r->enough &= !r->depends;
		r->at_most |= r->depends;
	}
	return list.count;
}

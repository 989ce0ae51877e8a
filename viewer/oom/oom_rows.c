/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests under torch.func's vmap, recognized by its batching rules on the stack: rows of a
 * Jacobian, or gradients of each sample. One call computes all rows at once, whatever the
 * batch size.
 */
#include "oom.h"

enum { PARTS = 8, LOOK_BACK = 1 << 12 };

static bool is_batched(const struct oom *o, uint32_t stack, uint64_t seq)
{
	/* torch.func's vmap, the older rules of is_grads_batched, and the loop that replaces
	 * missing rules. */
	static const char *const rules[] = { "_generated_plumbing", "batching_rule",
					     "batchedTensorForLoopFallback" };

	return ANY_OF(r, rules, 3, stacks_have(&o->timeline->stacks, stack, seq, *r));
}

/* Finds the line of the script that called a transform of torch.func. False: the stack has none. */
static bool find_call(const struct oom *o, uint32_t stack, struct owner *line)
{
	struct stacks *s = &o->timeline->stacks;
	bool inside = false;

	stacks_read_python(s, stack);
	for (size_t i = 0; i < s->count; i++) {
		const struct frame *f = &s->frames[i];

		if (strstr(f->file, "torch/_functorch/") != NULL)
			inside = true;
		if (!inside || owners_is_plumbing(f->file))
			continue;
		*line = (struct owner){ .function = f->function, .file = f->file, .line = f->line };
		return true;
	}
	return false;
}

void oom_find_rows(struct oom *o)
{
	uint32_t n = oom_lives(o);
	bool backward = stage_is_backward(o->wanted_stage), called;

	if (!is_batched(o, o->wanted.stack, o->wanted.seq))
		return;
	called = find_call(o, o->wanted.stack, &o->rows.call);
	for (uint32_t i = n; backward && !called && i-- > 0 && n - i < LOOK_BACK;)
		called =
			find_call(o, lives_read(&o->timeline->model.lives, i).stack, &o->rows.call);
	/* Inside a package the caller might have no way to choose the size of a part. */
	if (called ? strstr(o->rows.call.file, "-packages/") != NULL : !backward)
		return;
	o->rows.bytes = o->block;
	FOR_BLOCKS (b, &o->shot.moment) {
		if (!category_in(b->category, OF_ONE_PASS) || !is_batched(o, b->stack, b->seq))
			continue;
		o->rows.bytes += b->size;
		o->rows.saved |= b->state & LIFE_SAVED;
	}
}

uint64_t remedy_fewer_rows(const struct oom *o, char *what, char *how)
{
	const struct owner *call = &o->rows.call;

	if (!o->rows.bytes)
		return 0;
	oom_say(what,
		"Compute fewer rows at a time%s%s: chunk_size= of torch.func's vmap or jacrev (in "
		"place of jacfwd or hessian), or parts of what torch.autograd.grad takes with "
		"is_grads_batched=True%s",
		call->file ? ", called by " : "", call->file ? WHO(call) : "",
		o->rows.saved ? ". Weights that require gradients keep a graph of all parts: "
				"detach() them"
			      : "");
	oom_say(how,
		"%s, with the request, that vmap makes for all rows at once. All but an eighth of "
		"it, if that is all of the rows at a time",
		B(o->rows.bytes));
	return o->rows.bytes - o->rows.bytes / PARTS;
}

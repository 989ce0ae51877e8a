/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests for workspaces. If one of cuDNN's does not fit, PyTorch tries cuDNN's other plans, and
 * if none is left its message does not say that memory ran out. With the search for the fastest
 * plan (torch.backends.cudnn.benchmark) it does not even request what cannot fit.
 */
#include "../advise/advise.h"
#include "../base/arithmetic.h"
#include "oom.h"

#define MESSAGE "was unable to find an engine to execute this computation"

static bool is_workspace_of(const struct oom *o, const struct block *b, bool cublas)
{
	return b->category == CATEGORY_workspace &&
	       advise_is_of_cublas(o->timeline, b->stack, b->seq) == cublas;
}

bool oom_is_up_to_the_library(const struct oom *o)
{
	return is_workspace_of(o, &o->wanted, false);
}

const char *oom_request_words(const struct oom *o)
{
	return o->wanted.category == CATEGORY_workspace ? "for a workspace of" : "for a tensor of";
}

/* One setting for all: that of the largest. */
static const struct cublas_setting *setting_of(const struct oom *o)
{
	uint64_t most = is_workspace_of(o, &o->wanted, true) ? o->block : 0;

	FOR_BLOCKS (b, &o->shot.moment)
		if (b->size > most && is_workspace_of(o, b, true))
			most = b->size;
	return advise_cublas_setting(most);
}

uint64_t oom_spared(const struct oom *o, const struct block *b, uint64_t left)
{
	return left && b->size > left && is_workspace_of(o, b, true) ? b->size - left : 0;
}

uint64_t oom_cublas_left(const struct oom *o)
{
	const struct cublas_setting *x = setting_of(o);

	return x ? x->left : 0;
}

uint64_t oom_spared_all(const struct oom *o)
{
	uint64_t left = oom_cublas_left(o),
		 all = oom_spared(o, &o->wanted, left) + SUM_OF(b, o->shot.moment.blocks,
								o->shot.moment.count,
								oom_spared(o, b, left));

	return all < o->capacity / 20 && o->wanted.category != CATEGORY_workspace ? 0 : all;
}

uint64_t remedy_less_workspace(const struct oom *o, char *what, char *how)
{
	const struct cublas_setting *x = setting_of(o);

	if (!x)
		return 0;
	oom_say(what,
		"Limit workspaces: CUBLAS_WORKSPACE_CONFIG=%s, or fewer streams. cuBLAS may choose "
		"slower kernels",
		x->conf);
	oom_say(how, "Workspaces of cuBLAS, of which %s each stay", B(x->left));
	return oom_spared_all(o);
}

void oom_say_message(const struct oom *o, char text[OOM_TEXT])
{
	struct stacks *s = &o->timeline->stacks;
	const struct lives_mark *e = &o->refusal.event;
	bool one = stacks_have(s, e->stack, e->seq, "native::try_configs"),
	     search = stacks_have(s, e->stack, e->seq, "native::generate_and_filter_plans") ||
		      stacks_have(s, e->stack, e->seq, "native::try_plans");

	if (one || search || stacks_have(s, e->stack, e->seq, "native::run_conv_plan"))
		text_add(text, OOM_TEXT,
			 " The request is cuDNN's. PyTorch tries its other plans then; if none "
			 "fits, the message is \"%s " MESSAGE "\".",
			 one	  ? "GET"
			 : search ? "FIND"
				  : "GET (or FIND)");
	if (search)
		text_add(text, OOM_TEXT,
			 " torch.backends.cudnn.benchmark is on: its search requests the largest "
			 "workspace of all plans.");
}

/* The latest block is the result of a convolution (its workspaces and copies aside), which freed it
 * itself and did not return it: the convolution failed. */
static bool is_failed(struct timeline *t, struct lived *out)
{
	const struct lives *l = &t->model.lives;
	struct stacks *s = &t->stacks;

	for (uint32_t i = l->rows.count; i-- > 0;) {
		struct lived x = lives_read(l, i);

		if (x.born->layer != LIFE_BLOCK || x.born->memory ||
		    stacks_have(s, x.stack, x.from, "native::run_single_conv") ||
		    stacks_have(s, x.stack, x.from, "native::contiguous"))
			continue;
		*out = x;
		return x.until != LIVES_OPEN &&
		       stacks_have(s, x.stack, x.from, "native::cudnn_convolution") &&
		       stacks_have(s, x.row->died_stack, x.until, "native::cudnn_convolution");
	}
	return false;
}

bool oom_no_plan(struct timeline *t, char text[OOM_TEXT])
{
	struct lived x = { 0 };
	struct block b = { 0 };
	struct moment mo;
	struct owner owner;
	struct room room;

	text[0] = 0;
	if (!is_failed(t, &x))
		return false;
	if (x.born->device != t->device)
		timeline_look(t, x.born->device);
	mo = (struct moment){ .device = t->device, .seq = x.from, .framework = t->framework };
	model_take(&t->model, &mo);
	room = room_at(&t->model, &mo, NULL);
	b.stack = x.stack;
	b.seq = x.from;
	owner = owners_find(&t->owners, &b);
	oom_say(text, "no request was refused, but the last convolution (%s) failed", WHO(&owner));
	if (room.sampled)
		text_add(text, OOM_TEXT, " with %s of %s free and %s cached", B(room.free),
			 B(room.total), B(room.cached));
	text_add(text, OOM_TEXT,
		 ". If the message was \"FIND " MESSAGE "\", the workspaces of all plans were "
		 "too large: torch.backends.cudnn.benchmark does not request what is larger than "
		 "the free memory");
	moment_free(&mo);
	return true;
}

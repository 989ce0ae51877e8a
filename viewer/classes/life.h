/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Questions that rules ask about a life: where it was born and where it ended, by the passes that
 * had begun then, and its tags from autograd.
 */
#pragma once

#define ANY_TAG (~0u)

/* True if the stack that made it has any of these: enum stack_sign. */
static inline bool life_made_by(const struct history *h, uint32_t signs)
{
	return h->signs & signs;
}

static inline bool life_born_in_backward(const struct history *h)
{
	return stage_is_backward(h->stage);
}

static inline bool life_ended(const struct history *h)
{
	return h->block.died_seq;
}

static inline bool life_ended_in(const struct history *h, enum block_stage stage)
{
	return life_ended(h) && h->died_stage == stage;
}

static inline bool life_ended_in_backward(const struct history *h)
{
	return life_ended(h) && stage_is_backward(h->died_stage);
}

/* Number of passes that had begun when it ended, or at the end of the recording. */
static inline uint32_t life_last_forward(const struct classifier *c, const struct history *h)
{
	return life_ended(h) ? h->died_forward : c->m->spans.forwards;
}

static inline uint32_t life_last_backward(const struct classifier *c, const struct history *h)
{
	return life_ended(h) ? h->died_backward : c->m->spans.backwards;
}

/* A pass began while it lived. */
static inline bool life_saw_forward(const struct classifier *c, const struct history *h)
{
	return life_last_forward(c, h) > h->born_forward;
}

static inline bool life_saw_backward(const struct classifier *c, const struct history *h)
{
	return life_last_backward(c, h) > h->born_backward;
}

/* The block outlived the backward pass in which it was born. */
static inline bool life_lived_past_backward(const struct history *h)
{
	return !life_ended_in_backward(h) || h->died_backward > h->born_backward;
}

/* The block was alive after the next pass had begun. */
static inline bool life_lived_on(const struct classifier *c, const struct history *h)
{
	return !life_ended(h) || h->died_forward > h->born_forward ||
	       (!c->m->spans.forwards && h->died_backward > h->born_backward);
}

static inline bool life_lived_past(const struct history *h, uint64_t seq)
{
	return !life_ended(h) || h->block.died_seq > seq;
}

/* No pass had begun. */
static inline bool life_is_early(const struct history *h)
{
	return !h->born_forward && !h->born_backward;
}

/* True if it has any of these: enum block_tag. */
static inline bool life_tagged(const struct history *h, unsigned tags)
{
	return h->facts.tags & tags;
}

/* A graph holds it at this moment. */
static inline bool life_saved(const struct history *h)
{
	return h->block.state & LIFE_SAVED;
}

/* A graph held it at some moment. */
static inline bool life_ever_saved(const struct history *h)
{
	return h->facts.save_ns;
}

/* The block that it replaced was made by any of these: enum stack_sign. */
static inline bool life_replaced(const struct history *h, uint32_t signs)
{
	return h->concluded.predecessor_signs & signs;
}

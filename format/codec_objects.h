/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Numbers for the objects that tags name, in order of appearance: a number takes fewer bytes than
 * an address (FORMAT.md, section 4.6). Only codec.c includes this, for both directions.
 */
#pragma once

#include "record.h"
#include "codec.h"

static inline bool names_object(unsigned kind)
{
	return kind < GMT_KIND_EXTRA && gmt_kind_layer(kind) == GMT_LAYER_TAG;
}

static inline bool makes_object(unsigned kind)
{
	return kind == GMT_TAG_SAVED || kind == GMT_TAG_LEAF;
}

/* The likely number: a step makes objects in the last step's order, then names them in reverse. */
static inline uint32_t expected_number(const struct gmt_codec *c, unsigned kind)
{
	return makes_object(kind) ? c->last_made + 1 : c->last_named - 1;
}

static inline void note_number(struct gmt_codec *c, unsigned kind, uint32_t number)
{
	*(makes_object(kind) ? &c->last_made : &c->last_named) = number;
}

static inline unsigned number_place(uint64_t object)
{
	return (unsigned)((object >> 4) * 0x9e3779b97f4a7c15ULL >> 52);
}

static inline uint32_t *number_of(struct gmt_codec *c, uint64_t object)
{
	return &c->number[number_place(object)];
}

static inline bool is_kept(const struct gmt_codec *c, uint32_t number)
{
	return c->objects - number - 1 < GMT_CODEC_OBJECTS;
}

/* Numbers the object: always anew if a tag makes it, else only if it has no number. */
static inline void enter_object(struct gmt_codec *c, unsigned kind, uint64_t object, bool known)
{
	if (known && !makes_object(kind))
		return;
	c->object[c->objects % GMT_CODEC_OBJECTS] = object;
	*number_of(c, object) = c->objects;
	if (makes_object(kind))
		c->last_named = c->objects + 1;
	c->objects++;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The objects that tags are about, numbered as they come: a number takes fewer bytes than an
 * address (FORMAT.md, section 4.6). Shared by the encoder and the decoder of codec.c, in which all
 * of it is compiled.
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

/* Objects are made in the order of the step before, and named again in the reverse order. */
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

/* An object that is made gets a number, also if it had one; one that is named, if it had none. */
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

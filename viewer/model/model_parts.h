/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of the model only. */
#pragma once

#include "model.h"

struct model_device *model_device(struct model *m, int device); /* NULL if no such device is kept */
struct history *model_birth(struct model *m, struct tree *t, const struct gmt_event *e);
void model_rise(struct model *m, struct curve *c, uint64_t bytes, const struct gmt_event *e);
void model_set(struct model *m, struct curve *c, uint64_t bytes, const struct gmt_event *e);
void model_fall(struct curve *c, uint64_t bytes);
void model_note_death(struct model *m, struct history *b, const struct gmt_event *e);

typedef void model_handler(struct model *m, const struct gmt_event *e);

model_handler model_block_alloc, model_block_free, model_block_oom;
model_handler model_mem_alloc, model_mem_free, model_mem_fail, model_ctx_create, model_ctx_current,
	model_ctx_destroy, model_meminfo;
model_handler model_phys_create, model_phys_release, model_phys_retain, model_map, model_unmap;
model_handler model_tag_leaf, model_tag_moved, model_tag_saved, model_tag_released, model_tag_grad,
	model_tag_held;
model_handler model_range_begin;
model_handler model_use;
model_handler model_va_release, model_graph, model_segment_pool, model_reuse;

void model_row_born(struct model *m, struct history *b, enum life_layer layer);
void model_row_died(struct model *m, struct history *b, const struct gmt_event *e);
void model_rows_settle(struct model *m);
void model_add_bucket(struct model *m, struct history *b, enum life_layer layer);
void model_drop_bucket(struct model *m, const struct history *b);
/* Live blocks whose physical memory is unmapped, or mapped again. */
void model_unmapped(struct model *m, struct model_device *d, const struct history *mapping,
		    const struct gmt_event *e);
bool model_mapped_again(struct model *m, struct history *mapping, const struct gmt_event *e);
/* Assigns the segments under a new block to its pool. */
void model_place_block(struct model *m, struct model_device *d, const struct gmt_event *e);
void model_expect_block(struct model_device *d, struct history *segment);
void model_drop_segment(struct model_device *d, const struct history *segment);
void model_note_mark(struct model *m, const struct gmt_event *e);
void model_look_at_buckets(struct model *m, const struct gmt_event *e);

/* SPDX-License-Identifier: Apache-2.0 */
/* Between the files of the model only. */
#ifndef VIEWER_MODEL_PARTS_H
#define VIEWER_MODEL_PARTS_H

#include "model.h"

struct model_device *model_device(struct model *m, int device); /* NULL if no such device is kept */
struct model_thread *model_thread(struct model *m, uint32_t thread);
struct history *model_birth(struct model *m, struct tree *t, const struct gmt_event *e);
void model_rise(struct model *m, struct curve *c, uint64_t bytes, const struct gmt_event *e);
void model_set(struct model *m, struct curve *c, uint64_t bytes, const struct gmt_event *e);
void model_fall(struct curve *c, uint64_t bytes);
/* A large block may keep a rest of up to 1 MiB that was not worth splitting off. */
bool model_as_large(uint64_t a, uint64_t b);
void model_note_before_end(struct model *m, const struct history *b);
void model_settle_before(struct model *m);
void model_note_line(struct model *m, const struct history *b);
void model_note_size(struct model *m, const struct history *b);
void model_note_gradient_size(struct model *m, uint64_t size);
void model_note_birth(struct model *m, struct history *b);
void model_note_pass(struct model *m, struct history *b);
void model_note_pass_end(struct model *m, const struct history *b);
void model_end_walk(struct model *m, const struct gmt_event *e);
void model_note_habits(struct model *m, const struct history *b);
void model_note_heir(struct model *m, const struct history *b, const struct gmt_event *e);
/* Who made a leaf's memory, and that other memory has taken its place. */
void model_note_maker(struct model_leaf *leaf, const struct history *b);
void model_note_moved(const struct model_leaf *leaf, struct history *b);
void model_note_death(struct model *m, struct history *b, const struct gmt_event *e);

bool model_is_framework_block(const struct gmt_event *e); /* though a CUDA call gave it */
bool model_is_device_memory(uint64_t memory); /* enum gmt_mem: it takes room on a device */

typedef void model_handler(struct model *m, const struct gmt_event *e);

model_handler model_block_alloc, model_block_free, model_block_oom;
model_handler model_mem_alloc, model_mem_free, model_mem_fail, model_ctx_destroy, model_meminfo;
model_handler model_phys_create, model_phys_release, model_phys_retain, model_map, model_unmap;
model_handler model_tag_leaf, model_tag_moved, model_tag_saved, model_tag_released, model_tag_grad;
model_handler model_range_begin;

void model_row_born(struct model *m, struct history *b, enum life_layer layer);
void model_row_change(struct model *m, const struct history *b, enum life_change change,
		      const struct gmt_event *e);
void model_row_died(struct model *m, struct history *b, const struct gmt_event *e);
void model_rows_settle(struct model *m);
void model_add_bucket(struct model *m, struct history *b, enum life_layer layer);
void model_drop_bucket(struct model *m, const struct history *b);
void model_note_mark(struct model *m, const struct gmt_event *e);
bool model_is_mark(uint16_t kind);
void model_look_at_buckets(struct model *m, const struct gmt_event *e);

#endif

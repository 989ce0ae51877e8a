/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory snapshot that PyTorch itself would have written, with traces from the first event on
 * and the class of every block as its metadata. Sizes are those of blocks; what was asked for is
 * not recorded. Memory that no segment was seen for is a segment of its own.
 */
#include <stdlib.h>
#include <string.h>

#include "../base/need.h"
#include "export_torch.h"

enum { OWN_SEGMENT = 1, EXPANDABLE = 2 };

struct pending {
	struct block block;
	unsigned class;
	bool ended;
};

struct torch_device {
	struct tree segments; /* tags: as above */
	struct tree live;     /* counted_as: class at birth */
};

struct torch {
	struct export *x;
	struct pickler p;
	struct map stacks, frames; /* -> kept */
	int device;
	struct torch_device *now; /* of that device */
	uint64_t entries;
	bool named; /* see export_torch.h */
	struct pending *pending;
	size_t pending_count, pending_room;
};

static uint64_t frame_key(const struct frame *f, const char *name)
{
	uint64_t h = f->line;

	for (const char *s = name; *s; s++)
		h = (h ^ (uint8_t)*s) * 0x100000001b3;
	for (const char *s = f->file; *s; s++)
		h = (h ^ (uint8_t)*s) * 0x100000001b7;
	return h;
}

static void write_frame(struct torch *t, const struct frame *f)
{
	char unnamed[256];
	const char *name = export_frame_name(f, unnamed, sizeof(unnamed));
	bool fresh;
	uint32_t *at = map_put(&t->frames, frame_key(f, name), &fresh);

	if (!fresh) {
		pickler_again(&t->p, *at);
		return;
	}
	pickler_dict(&t->p);
	pickler_text_at(&t->p, "name", name, strlen(name));
	pickler_word(&t->p, "filename");
	pickler_word(&t->p, f->file[0] ? f->file : "??");
	pickler_int_at(&t->p, "line", f->line);
	pickler_dict_end(&t->p);
	*at = pickler_keep(&t->p);
}

static void write_frames(struct torch *t, uint32_t stack, uint64_t seq)
{
	bool fresh;
	uint32_t *at = map_put(&t->stacks, stack, &fresh);
	size_t n;

	pickler_word(&t->p, "frames");
	if (!fresh) {
		pickler_again(&t->p, *at);
		return;
	}
	n = export_frames(t->x, stack, seq);
	pickler_list(&t->p);
	for (size_t i = 0; i < n; i++) {
		pickler_next(&t->p, i);
		write_frame(t, &t->x->stacks.frames[i]);
	}
	pickler_list_end(&t->p, n);
	*map_put(&t->stacks, stack, &fresh) = pickler_keep(&t->p);
}

static void entry(struct torch *t, const char *action, const struct gmt_event *e, uint64_t addr,
		  uint64_t size, uint64_t stream, int class)
{
	bool oom = !strcmp(action, "oom");

	pickler_next(&t->p, t->entries++);
	pickler_dict(&t->p);
	pickler_word(&t->p, "action");
	pickler_word(&t->p, action);
	pickler_int_at(&t->p, oom ? "device_free" : "addr", (int64_t)addr);
	pickler_int_at(&t->p, "size", (int64_t)size);
	pickler_int_at(&t->p, "stream", (int64_t)stream);
	pickler_int_at(&t->p, "time_us", (int64_t)(export_wall(t->x, e->time_ns) / 1000));
	pickler_word(&t->p, "compile_context");
	pickler_word(&t->p, "N/A");
	export_torch_class(&t->p, class);
	export_torch_category(&t->p, &t->named, action, class);
	write_frames(t, e->stack, e->seq);
	pickler_dict_end(&t->p);
}

static void add_segment(struct torch *t, const struct gmt_event *e, uint64_t addr, uint64_t size,
			unsigned tags)
{
	struct block *b = tree_find(&t->now->segments, addr);

	if (!b)
		b = tree_insert(&t->now->segments, addr);
	b->size = size;
	b->stream = e->stream;
	b->stack = e->stack;
	b->seq = e->seq;
	b->mark = (uint16_t)tags;
	if (!(e->flags & GMT_FLAG_LATE))
		entry(t, tags & EXPANDABLE ? "segment_map" : "segment_alloc", e, addr, size,
		      e->stream, -1);
}

static void remove_segment(struct torch *t, const struct gmt_event *e, uint64_t addr)
{
	const struct block *b = tree_find(&t->now->segments, addr);

	if (!b)
		return;
	entry(t, b->mark & EXPANDABLE ? "segment_unmap" : "segment_free", e, addr, b->size,
	      b->stream, -1);
	tree_remove(&t->now->segments, addr);
}

static void remove_mappings(struct torch *t, const struct gmt_event *e)
{
	const struct block *b = tree_from(&t->now->segments, e->addr);

	while (b && b->addr - e->addr < e->size) {
		uint64_t next = b->addr + 1;

		if (b->mark & EXPANDABLE)
			remove_segment(t, e, b->addr);
		b = tree_from(&t->now->segments, next);
	}
}

static void tell_birth(struct torch *t, const struct gmt_event *e, const struct pending *p)
{
	struct block *b = tree_find(&t->now->live, p->block.addr);
	bool late = p->block.flags & GMT_FLAG_LATE;
	struct gmt_event of = *e;

	of.stack = p->block.stack;
	of.stream = p->block.stream;
	of.flags = late ? GMT_FLAG_LATE : 0;
	if (!tree_enclosing(&t->now->segments, p->block.addr))
		add_segment(t, &of, p->block.addr, p->block.size, OWN_SEGMENT);
	if (!late)
		entry(t, "alloc", &of, p->block.addr, p->block.size, of.stream, (int)p->class);
	if (!b)
		b = tree_insert(&t->now->live, p->block.addr);
	b->size = p->block.size;
	b->stack = of.stack;
	b->seq = p->block.seq;
	b->mark = (uint16_t)p->class;
}

static void tell_end(struct torch *t, const struct gmt_event *e, const struct pending *p)
{
	const struct block *segment = tree_find(&t->now->segments, p->block.addr);

	entry(t, "free_requested", e, p->block.addr, p->block.size, p->block.stream, (int)p->class);
	entry(t, "free_completed", e, p->block.addr, p->block.size, p->block.stream, (int)p->class);
	if (tree_find(&t->now->live, p->block.addr))
		tree_remove(&t->now->live, p->block.addr);
	if (segment && segment->mark & OWN_SEGMENT)
		remove_segment(t, e, p->block.addr);
}

static void on_life(void *ctx, const struct export_life *l)
{
	struct torch *t = ctx;

	if (l->block->device != t->device)
		return;
	t->pending = need_grow(t->pending, &t->pending_room, t->pending_count, sizeof(*t->pending));
	t->pending[t->pending_count++] = (struct pending){ *l->block, l->born_as, l->ended };
}

static bool is_segment(const struct torch *t, const struct gmt_event *e)
{
	return t->x->facts.devices[t->device].framework && e->device == t->device &&
	       e->flags & GMT_FLAG_FRAMEWORK && e->arg0 == GMT_MEM_DEVICE;
}

static void on_segments(struct torch *t, const struct gmt_event *e, const struct model *m)
{
	const struct block *b;

	if (e->kind == GMT_MEM_ALLOC && is_segment(t, e)) {
		add_segment(t, e, e->addr, e->size, 0);
	} else if (e->kind == GMT_MEM_FREE) {
		remove_segment(t, e, e->addr);
	} else if (e->kind == GMT_MAP) {
		b = tree_find(&m->mapped, e->addr);
		if (b && b->device == t->device && b->flags & GMT_FLAG_FRAMEWORK)
			add_segment(t, e, e->addr, e->size, EXPANDABLE);
	} else if (e->kind == GMT_UNMAP) {
		remove_mappings(t, e);
	} else if (e->kind == GMT_BLOCK_OOM && e->device == t->device) {
		entry(t, "oom", e, m->devices[t->device].free_bytes, e->size, e->stream, -1);
	}
}

/* Of one event: ends, then segments, then births. */
static void on_event(void *ctx, const struct gmt_event *e, const struct model *m)
{
	struct torch *t = ctx;

	for (size_t i = 0; i < t->pending_count; i++)
		if (t->pending[i].ended)
			tell_end(t, e, &t->pending[i]);
	on_segments(t, e, m);
	for (size_t i = 0; i < t->pending_count; i++)
		if (!t->pending[i].ended)
			tell_birth(t, e, &t->pending[i]);
	t->pending_count = 0;
}

static void write_block(struct torch *t, uint64_t addr, uint64_t size, const struct block *live)
{
	pickler_dict(&t->p);
	pickler_int_at(&t->p, "address", (int64_t)addr);
	pickler_int_at(&t->p, "size", (int64_t)size);
	pickler_int_at(&t->p, "requested_size", live ? (int64_t)size : 0);
	pickler_word(&t->p, "state");
	pickler_word(&t->p, live ? "active_allocated" : "inactive");
	export_torch_class(&t->p, live ? live->mark : -1);
	write_frames(t, live ? live->stack : 0, live ? live->seq : 0);
	pickler_dict_end(&t->p);
}

/* Blocks and the room between them; how many bytes the blocks are. */
static uint64_t write_blocks(struct torch *t, uint64_t addr, uint64_t end)
{
	uint64_t n = 0, sum = 0;

	pickler_word(&t->p, "blocks");
	pickler_list(&t->p);
	while (addr < end) {
		const struct block *b = tree_from(&t->now->live, addr);
		uint64_t next = b && b->addr < end ? b->addr : end;

		pickler_next(&t->p, n++);
		if (next > addr) {
			write_block(t, addr, next - addr, NULL);
			addr = next;
			continue;
		}
		next = b->size && b->size < end - addr ? addr + b->size : end;
		write_block(t, addr, next - addr, b);
		sum += next - addr;
		addr = next;
	}
	pickler_list_end(&t->p, n);
	return sum;
}

static void write_segment(struct torch *t, const struct block *s, uint64_t end)
{
	uint64_t sum, size = end - s->addr;

	pickler_dict(&t->p);
	pickler_int_at(&t->p, "device", t->device);
	pickler_int_at(&t->p, "address", (int64_t)s->addr);
	pickler_int_at(&t->p, "total_size", (int64_t)size);
	sum = write_blocks(t, s->addr, end);
	pickler_int_at(&t->p, "allocated_size", (int64_t)sum);
	pickler_int_at(&t->p, "active_size", (int64_t)sum);
	pickler_int_at(&t->p, "requested_size", (int64_t)sum);
	pickler_int_at(&t->p, "stream", (int64_t)s->stream);
	pickler_word(&t->p, "segment_type");
	pickler_word(&t->p, size <= 2 << 20 ? "small" : "large");
	pickler_word(&t->p, "segment_pool_id");
	pickler_int(&t->p, 0);
	pickler_int(&t->p, 0);
	pickler_tuple(&t->p, 2);
	pickler_word(&t->p, "is_expandable");
	pickler_bool(&t->p, s->mark & EXPANDABLE);
	write_frames(t, s->stack, s->seq);
	pickler_dict_end(&t->p);
}

/* Mappings that touch are one expandable segment. */
static uint64_t write_segments(struct torch *t, uint64_t count)
{
	const struct block *s = tree_from(&t->now->segments, 0), *next;

	while (s) {
		uint64_t end = s->addr + s->size;

		while (s->mark & EXPANDABLE && (next = tree_find(&t->now->segments, end)) &&
		       next->mark & EXPANDABLE && next->size)
			end += next->size;
		pickler_next(&t->p, count++);
		write_segment(t, s, end);
		s = tree_from(&t->now->segments, end > s->addr ? end : s->addr + 1);
	}
	return count;
}

struct annotations {
	struct torch *t;
	uint64_t count;
	int device;
};

static int annotation(void *ctx, const struct gmt_event *e)
{
	struct annotations *a = ctx;
	struct pickler *p = &a->t->p;
	struct defs_text name = defs_string(&a->t->x->recording.defs, e->name);

	if (e->kind != GMT_RANGE_BEGIN && e->kind != GMT_RANGE_END)
		return 0;
	pickler_next(p, a->count++);
	pickler_dict(p);
	pickler_word(p, "stage");
	pickler_word(p, e->kind == GMT_RANGE_BEGIN ? "START" : "END");
	pickler_text_at(p, "name", name.s, name.len);
	pickler_int_at(p, "device", a->device);
	pickler_int_at(p, "time_us", (int64_t)(export_wall(a->t->x, e->time_ns) / 1000));
	pickler_dict_end(p);
	return 0;
}

static int write_annotations(struct torch *t)
{
	struct annotations a = { t, 0, model_main_device(&t->x->facts) };
	int rc;

	pickler_word(&t->p, "external_annotations");
	pickler_list(&t->p);
	rc = recording_run(&t->x->recording, UINT64_MAX, annotation, &a);
	pickler_list_end(&t->p, a.count);
	return rc;
}

static void write_settings(struct torch *t, bool expandable)
{
	struct defs_text conf = defs_meta(&t->x->recording.defs, "PYTORCH_CUDA_ALLOC_CONF");

	pickler_word(&t->p, "allocator_settings");
	pickler_dict(&t->p);
	pickler_text_at(&t->p, "PYTORCH_CUDA_ALLOC_CONF", conf.s, conf.len);
	pickler_int_at(&t->p, "max_split_size", -1);
	pickler_word(&t->p, "garbage_collection_threshold");
	pickler_float(&t->p, 0);
	pickler_word(&t->p, "expandable_segments");
	pickler_bool(&t->p, expandable);
	pickler_dict_end(&t->p);
}

/* The index of a trace is its device: those that were not seen have an empty one. */
static int write_traces(struct torch *t, struct torch_device *devices, int count)
{
	const struct export_walk walk = { .life = on_life, .event = on_event, .ctx = t };
	int rc = 0;

	pickler_word(&t->p, "device_traces");
	pickler_list(&t->p);
	for (t->device = 0; t->device < count && !rc; t->device++) {
		t->now = &devices[t->device];
		t->entries = 0;
		pickler_next(&t->p, (uint64_t)t->device);
		pickler_list(&t->p);
		if (t->x->facts.devices[t->device].seen)
			rc = export_walk(t->x, &walk);
		pickler_list_end(&t->p, t->entries);
	}
	pickler_list_end(&t->p, (uint64_t)count);
	return rc;
}

static bool write_all_segments(struct torch *t, struct torch_device *devices, int count)
{
	uint64_t segments = 0;
	bool expandable = false;

	pickler_word(&t->p, "segments");
	pickler_list(&t->p);
	for (t->device = 0; t->device < count; t->device++) {
		t->now = &devices[t->device];
		segments = write_segments(t, segments);
		TREE_EACH(&t->now->segments, s)
		expandable |= s->mark & EXPANDABLE;
		tree_free(&t->now->segments);
		tree_free(&t->now->live);
	}
	pickler_list_end(&t->p, segments);
	return expandable;
}

static int device_count(const struct model *m)
{
	int count = 1;

	for (int d = 0; d < MODEL_DEVICES; d++)
		if (m->devices[d].seen)
			count = d + 1;
	return count;
}

static int export_events(struct export *x)
{
	struct torch t = { .x = x };
	int count = device_count(&x->facts), rc, more;
	struct torch_device *devices = need_new((size_t)count * sizeof(*devices));

	pickler_start(&t.p, x->f);
	pickler_dict(&t.p);
	rc = write_traces(&t, devices, count);
	write_settings(&t, write_all_segments(&t, devices, count));
	more = write_annotations(&t);
	pickler_dict_end(&t.p);
	pickler_stop(&t.p);
	map_free(&t.stacks);
	map_free(&t.frames);
	free(t.pending);
	free(devices);
	return rc ? rc : more;
}

int export_torch(struct export *x)
{
	struct torch_source s;
	int rc = export_torch_source(x, &s);

	if (!rc)
		rc = s.len ? export_torch_again(x, &s) : export_events(x);
	free(s.bytes);
	return rc;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory snapshot that PyTorch itself would have written, with traces from the first event on,
 * and the class of every block as its metadata. Sizes are those of blocks, because requested sizes
 * are not recorded. Memory without a known segment becomes a segment of its own.
 */
#include "export_torch.h"

#include "../../format/record.h"

enum { OWN_SEGMENT = 1, EXPANDABLE = 2 };

struct pending {
	uint32_t life;
	bool ended;
};

struct torch_device {
	struct tree segments; /* mark: OWN_SEGMENT, EXPANDABLE */
	struct tree live;     /* mark: class at birth */
};

/* Origin and time of an entry. */
struct origin {
	uint64_t seq, time_ns, stream;
	uint32_t stack;
	bool late;
};

struct torch {
	struct export *x;
	struct pickler p;
	struct map stacks, frames; /* id or hash -> its place in the memo */
	int device;
	struct torch_device *now; /* state of the current device */
	uint64_t entries;
	bool named; /* see export_torch.h */
	struct pending *pending;
	size_t pending_count, pending_room;
};

static void write_frame(struct torch *t, const struct frame *f)
{
	char unnamed[256];
	const char *name = export_frame_name(f, unnamed, sizeof(unnamed));
	bool fresh;
	uint32_t *at = map_put(&t->frames, export_frame_key(f, name), &fresh);

	if (!fresh) {
		pickler_again(&t->p, *at);
		return;
	}
	pickler_dict(&t->p);
	pickler_text_at(&t->p, "name", name, strlen(name));
	pickler_word_at(&t->p, "filename", f->file[0] ? f->file : "??");
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
		write_frame(t, &t->x->timeline.stacks.frames[i]);
	}
	pickler_list_end(&t->p, n);
	*map_put(&t->stacks, stack, NULL) = pickler_keep(&t->p);
}

static void entry(struct torch *t, const char *action, const struct origin *e, uint64_t addr,
		  uint64_t size, uint64_t stream, int class)
{
	bool oom = !strcmp(action, "oom");

	pickler_next(&t->p, t->entries++);
	pickler_dict(&t->p);
	pickler_word_at(&t->p, "action", action);
	pickler_int_at(&t->p, oom ? "device_free" : "addr", (int64_t)addr);
	pickler_int_at(&t->p, "size", (int64_t)size);
	pickler_int_at(&t->p, "stream", (int64_t)stream);
	pickler_int_at(&t->p, "time_us", (int64_t)(export_wall(t->x, e->time_ns) / 1000));
	pickler_word_at(&t->p, "compile_context", "N/A");
	export_torch_class(&t->p, class);
	export_torch_category(&t->p, &t->named, action, class);
	write_frames(t, e->stack, e->seq);
	pickler_dict_end(&t->p);
}

static void add_segment(struct torch *t, const struct origin *e, uint64_t addr, uint64_t size,
			unsigned tags)
{
	struct block *b = tree_insert(&t->now->segments, addr);

	b->size = size;
	b->stream = e->stream;
	b->stack = e->stack;
	b->seq = e->seq;
	b->mark = (uint16_t)tags;
	if (!e->late)
		entry(t, tags & EXPANDABLE ? "segment_map" : "segment_alloc", e, addr, size,
		      e->stream, -1);
}

static void remove_segment(struct torch *t, const struct origin *e, uint64_t addr)
{
	const struct block *b = tree_find(&t->now->segments, addr);

	if (!b)
		return;
	entry(t, b->mark & EXPANDABLE ? "segment_unmap" : "segment_free", e, addr, b->size,
	      b->stream, -1);
	tree_remove(&t->now->segments, addr);
}

static void tell_birth(struct torch *t, const struct origin *e, uint32_t life)
{
	struct block block, *b;
	unsigned class = export_verdict(t->x, life, &block).category;

	if (!tree_enclosing(&t->now->segments, block.addr))
		add_segment(t, e, block.addr, block.size, OWN_SEGMENT);
	if (!e->late)
		entry(t, "alloc", e, block.addr, block.size, e->stream, (int)class);
	b = tree_insert(&t->now->live, block.addr);
	b->size = block.size;
	b->stack = e->stack;
	b->seq = e->seq;
	b->mark = (uint16_t) class;
}

static void tell_end(struct torch *t, const struct origin *e, const struct life *life)
{
	uint64_t size = lives_request(&t->x->timeline.model.lives, life)->size;
	const struct block *b = tree_find(&t->now->live, life->addr);
	const struct block *segment = tree_find(&t->now->segments, life->addr);
	int class = b ? b->mark : -1;

	entry(t, "free_requested", e, life->addr, size, e->stream, class);
	entry(t, "free_completed", e, life->addr, size, e->stream, class);
	if (b)
		tree_remove(&t->now->live, life->addr);
	if (segment && segment->mark & OWN_SEGMENT)
		remove_segment(t, e, life->addr);
}

static void on_life(void *ctx, uint32_t life, bool ended)
{
	struct torch *t = ctx;
	const struct lives *l = &t->x->timeline.model.lives;

	if (lives_position(l, lives_at(l, life)->born.position)->device != t->device)
		return;
	*need_item(t->pending, t->pending_count, t->pending_room) = (struct pending){ life, ended };
}

/* Flags of a segment that the framework allocated from CUDA, 0 = none; -1: not a segment. */
static int segment_tags(const struct torch *t, const struct position *p)
{
	if (!(p->flags & GMT_FLAG_FRAMEWORK))
		return -1;
	if (p->layer == LIFE_MAPPED)
		return EXPANDABLE;
	return p->layer == LIFE_MEMORY && p->memory == GMT_MEM_DEVICE &&
			       t->x->timeline.model.devices[t->device].framework
		       ? 0
		       : -1;
}

enum part { PART_ENDS, PART_SEGMENT_ENDS, PART_SEGMENTS, PART_BIRTHS };

static void trace_entry(struct torch *t, const struct series_event *e, const struct pending *p,
			enum part part)
{
	const struct lives *l = &t->x->timeline.model.lives;
	const struct life *life = lives_at(l, p->life);
	const struct life_request *made = lives_request(l, life);
	const struct position *born = lives_position(l, life->born.position);
	const struct origin origin = { e->seq, e->time_ns, born->stream,
				       p->ended ? life->died_stack : made->stack,
				       born->flags & GMT_FLAG_LATE };
	bool over = e->mark && e->mark->kind == GMT_CTX_DESTROY; /* segments stay unchanged */
	bool counts = export_counts(t->x, p->life);
	int tags = segment_tags(t, born);

	if (part == PART_ENDS && p->ended && counts)
		tell_end(t, &origin, life);
	else if (part == PART_SEGMENT_ENDS && p->ended && !over &&
		 (born->layer == LIFE_MEMORY || born->layer == LIFE_MAPPED))
		remove_segment(t, &origin, life->addr);
	else if (part == PART_SEGMENTS && !p->ended && tags >= 0)
		add_segment(t, &origin, life->addr, made->size, (unsigned)tags);
	else if (part == PART_BIRTHS && !p->ended && counts)
		tell_birth(t, &origin, p->life);
}

static void tell_refusal(struct torch *t, const struct series_event *e)
{
	const struct lives_mark *m = e->mark;
	const struct origin origin = { m->seq, m->ns, m->stream, m->stack, false };

	if (m->kind == GMT_BLOCK_OOM && m->device == t->device)
		entry(t, "oom", &origin, e->devices[t->device].free_bytes, m->size, m->stream, -1);
}

/* Writes the changes of one event: frees, then segments, then allocations. */
static void on_event(void *ctx, const struct series_event *e)
{
	struct torch *t = ctx;

	for (enum part part = PART_ENDS; part <= PART_BIRTHS; part++)
		for (size_t i = 0; i < t->pending_count; i++)
			trace_entry(t, e, &t->pending[i], part);
	t->pending_count = 0;
	if (e->mark)
		tell_refusal(t, e);
}

static void write_block(struct torch *t, uint64_t addr, uint64_t size, const struct block *live)
{
	pickler_dict(&t->p);
	pickler_int_at(&t->p, "address", (int64_t)addr);
	pickler_int_at(&t->p, "size", (int64_t)size);
	pickler_int_at(&t->p, "requested_size", live ? (int64_t)size : 0);
	pickler_word_at(&t->p, "state", live ? "active_allocated" : "inactive");
	export_torch_class(&t->p, live ? (int)live->mark : -1);
	write_frames(t, live ? live->stack : 0, live ? live->seq : 0);
	pickler_dict_end(&t->p);
}

/* Writes blocks and the gaps between them; returns the bytes in blocks. */
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
	pickler_word_at(&t->p, "segment_type", size <= 2 << 20 ? "small" : "large");
	pickler_word(&t->p, "segment_pool_id");
	pickler_int(&t->p, 0);
	pickler_int(&t->p, 0);
	pickler_tuple(&t->p, 2);
	pickler_word(&t->p, "is_expandable");
	pickler_bool(&t->p, s->mark & EXPANDABLE);
	write_frames(t, s->stack, s->seq);
	pickler_dict_end(&t->p);
}

/* Adjacent mappings are one expandable segment. */
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

static void write_annotation(struct torch *t, const struct lives_mark *m, int device)
{
	struct pickler *p = &t->p;
	struct defs_text name = defs_string(&t->x->recording->defs, m->name);

	pickler_dict(p);
	pickler_word_at(p, "stage", m->kind == GMT_RANGE_BEGIN ? "START" : "END");
	pickler_text_at(p, "name", name.s, name.len);
	pickler_int_at(p, "device", device);
	pickler_int_at(p, "time_us", (int64_t)(export_wall(t->x, m->ns) / 1000));
	pickler_dict_end(p);
}

static void write_annotations(struct torch *t)
{
	const struct row_store *marks = &t->x->timeline.model.lives.marks;
	int device = model_main_device(&t->x->timeline.model);
	uint64_t count = 0;

	pickler_word(&t->p, "external_annotations");
	pickler_list(&t->p);
	for (uint32_t i = 0; i < marks->count; i++) {
		const struct lives_mark *m = rows_at(marks, i);

		if (m->kind != GMT_RANGE_BEGIN && m->kind != GMT_RANGE_END)
			continue;
		pickler_next(&t->p, count++);
		write_annotation(t, m, device);
	}
	pickler_list_end(&t->p, count);
}

static void write_settings(struct torch *t, bool expandable)
{
	struct defs_text conf = defs_meta(&t->x->recording->defs, "PYTORCH_CUDA_ALLOC_CONF");

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

/* The index of a trace is its device, so devices that were not seen get an empty trace. */
static void write_traces(struct torch *t, struct torch_device *devices, int count)
{
	const struct series_sink sink = { .life = on_life, .event = on_event, .ctx = t };

	pickler_word(&t->p, "device_traces");
	pickler_list(&t->p);
	for (t->device = 0; t->device < count; t->device++) {
		t->now = &devices[t->device];
		t->entries = 0;
		pickler_next(&t->p, (uint64_t)t->device);
		pickler_list(&t->p);
		if (t->x->timeline.model.devices[t->device].seen)
			export_series(t->x, &sink);
		pickler_list_end(&t->p, t->entries);
	}
	pickler_list_end(&t->p, (uint64_t)count);
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
		TREE_EACH (&t->now->segments, s)
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

static void export_events(struct export *x)
{
	struct torch t = { .x = x };
	int count = device_count(&x->timeline.model);
	struct torch_device *devices = need_new((size_t)count * sizeof(*devices));

	pickler_start(&t.p, x->f);
	pickler_dict(&t.p);
	write_traces(&t, devices, count);
	write_settings(&t, write_all_segments(&t, devices, count));
	write_annotations(&t);
	pickler_dict_end(&t.p);
	pickler_stop(&t.p);
	map_free(&t.stacks);
	map_free(&t.frames);
	free(t.pending);
	free(devices);
}

int export_torch(struct export *x)
{
	struct torch_source s;
	int rc = export_torch_source(x, &s);

	if (!rc && s.len)
		rc = export_torch_again(x, &s);
	else if (!rc)
		export_events(x);
	free(s.bytes);
	return rc;
}

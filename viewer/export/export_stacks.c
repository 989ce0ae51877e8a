/* SPDX-License-Identifier: Apache-2.0 */
#include "export_stacks.h"

#include "../base/ending.h"
#include "../base/sorted.h"

/*
 * Folded stacks: the class, then frames from the outermost to the innermost, between semicolons,
 * and the bytes that are alive. One line for each class and stack.
 */

/* Semicolons separate frames and new lines separate stacks, so they are replaced. */
static void folded_write_name(FILE *f, const char *s)
{
	for (; *s; s++)
		fputc(*s == ';' ? ':' : (unsigned char)*s < ' ' ? ' ' : *s, f);
}

static void line(struct export *x, const struct stack_sum *s)
{
	char unnamed[256];
	size_t n = stack_sum_frames(s, x);

	folded_write_name(x->f, categories[s->category].words);
	for (size_t i = n; i-- > 0;) {
		const struct frame *f = &x->timeline.stacks.frames[i];

		fputc(';', x->f);
		folded_write_name(x->f, export_frame_name(f, unnamed, sizeof(unnamed)));
		if (!f->python)
			continue;
		fputs(" (", x->f);
		folded_write_name(x->f, owners_base(f->file));
		fprintf(x->f, ":%u)", f->line);
	}
	fprintf(x->f, " %" PRIu64 "\n", s->bytes);
}

int export_folded(struct export *x)
{
	struct stack_sums sums;
	int rc = stack_sums_take(&sums, x);

	for (size_t i = 0; !rc && i < sums.count; i++)
		line(x, &sums.items[i]);
	map_items_free(&sums);
	return rc;
}

struct stack_sum *stack_sums_at(struct stack_sums *s, unsigned category, const struct block *b)
{
	uint64_t key = (uint64_t)b->stack << 28 | (b->stack ? 0 : b->name & 0xfffffff);
	struct stack_sum *sum = map_item(s, key * CATEGORIES + category);

	if (!sum->seq) {
		sum->category = category;
		sum->stack = b->stack;
		sum->name = b->memory ? 0 : b->name;
		sum->seq = b->seq;
	}
	return sum;
}

COMPARE(by_bytes, struct stack_sum,
	ORDER(y->bytes, x->bytes) ?: ORDER(x->category, y->category) ?: ORDER(x->stack, y->stack))

int stack_sums_take(struct stack_sums *s, struct export *x)
{
	struct moment mo = { 0 };
	int rc = export_moment(x, &mo);

	*s = (struct stack_sums){ 0 };
	if (rc)
		return rc;
	FOR_EACH (const struct block, b, mo.blocks, mo.count) {
		struct stack_sum *one = stack_sums_at(s, b->category, b);

		one->bytes += b->size;
		one->blocks++;
	}
	s->time_ns = mo.time_ns;
	s->device = mo.device;
	SORT(s->items, s->count, by_bytes);
	moment_free(&mo);
	return 0;
}

/* Frames that PyTorch's own recorder put on top of the stacks of a snapshot. */
static bool is_recorder(const struct frame *f)
{
	return words_begin(f->function,
			   ONE_OF("torch::unwind::unwind", "torch::CapturedTraceback::gather",
				  "torch::cuda::(anonymous namespace)::gather"));
}

size_t stack_sum_frames(const struct stack_sum *s, struct export *x)
{
	const char *which = x->which ? x->which : "all";
	const char *node = defs_string(&x->recording->defs, s->name).s;
	size_t n = export_frames(x, s->stack, s->seq), kept = 0;
	struct frame *frames = x->timeline.stacks.frames;

	for (size_t i = 0; i < n; i++)
		if ((which[0] == 'a' || frames[i].python == (which[0] == 'p')) &&
		    !(kept == 0 && is_recorder(&frames[i])))
			frames[kept++] = frames[i];
	x->timeline.stacks.count = kept;
	if (!kept && node[0])
		*need_item(x->timeline.stacks.frames, x->timeline.stacks.count,
			   x->timeline.stacks.room) =
			(struct frame){ .function = node, .file = "", .module = "" };
	return x->timeline.stacks.count;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The report as text in 80 columns: the peak first, then its moment, then the owners. */
#include "../../format/record.h"
#include "../base/human.h"
#include "../base/shell.h"
#include "../moments/room.h"
#include "../recording/running.h"
#include "columns.h"
#include "parts.h"
#include "report.h"

/*
 * A program without framework blocks that allocates most of a device in one piece: the report says
 * that the contents are not recorded and, if the owner of the piece is known, how to make it
 * allocate as needed.
 */

static const struct arena {
	const char *library, *whose, *setting;
} arenas[] = {
#define ARENA(library, whose, setting) { library, whose, setting },
#include "arenas.def"
#undef ARENA
};

/* The arena of the innermost frame that is in one of the libraries; NULL = none. */
static const struct arena *arena_of(struct report *r, const struct block *b)
{
	struct stacks *s = r->timeline.owners.stacks;

	stacks_read_native(s, b->stack, b->seq);
	for (size_t f = 0; f < s->count; f++) {
		const char *name = owners_base(s->frames[f].module);

		for (size_t i = 0; i < sizeof(arenas) / sizeof(arenas[0]); i++)
			if (!strncmp(name, arenas[i].library, strlen(arenas[i].library)))
				return &arenas[i];
	}
	return NULL;
}

static void report_arena(struct report *r, const struct moment *mo, struct emit *out)
{
	uint64_t total = r->timeline.model.devices[mo->device].total_bytes;
	const struct block *most = LARGEST_OF(b, mo, true);
	const struct arena *arena;

	if (mo->framework || !most || !total || most->size < total / 2)
		return;
	arena = arena_of(r, most);
	emit_line(out,
		  "  %s are one block, %.0f %% of the device; its contents are not "
		  "recorded.",
		  B(most->size), 100.0 * (double)most->size / (double)total);
	if (arena)
		emit_line(out, "  It is %s own allocator; %s lets it take memory as it needs it.",
			  arena->whose, arena->setting);
}

/* Prints the reserved peak if it is more than a tenth above the reserved bytes of the moment. */
static void most_line(struct report *r, const struct moment *mo, const struct pool_sums *pools,
		      struct emit *out)
{
	const struct model *m = &r->timeline.model;
	const struct peak *p = &m->devices[mo->device].reserved.peak;
	char when[MOMENTS_WHEN], who[OWNER_WORDS];

	if (p->bytes <= mo->reserved + mo->reserved / 10)
		return;
	moments_when(m, p->event.seq, p->event.time_ns, when, sizeof(when));
	emit_figure(out, FIGURE, "reserved at most", p->bytes, "%s", when + 1);
	FOR_EACH (const struct pool_sum, s, pools->items, pools->count)
		emit_figure(out, FIGURE, "  in private pools", s->bytes, "of %s, %s",
			    pool_kinds[s->kind].text, owner_words(&s->owner, who, sizeof(who), 20));
}

/* Prints the memory of the framework's cache outside of blocks. */
static void report_cache(struct report *r, const struct moment *mo, const struct pool_sums *most,
			 struct emit *out)
{
	struct model *m = &r->timeline.model;
	const struct model_device *d = &m->devices[mo->device];
	struct room room = room_at(m, mo, NULL);
	struct pool_sums pools = private_pools(m, mo, &r->timeline.owners);

	if (!mo->framework || !d->self_reported)
		return;
	if (d->asleep_most)
		emit_figure(out, FIGURE, "asleep", mo->asleep,
			    "allocated without physical memory, %s at most", B(d->asleep_most));
	if (room.hole)
		emit_figure(out, FIGURE, "cached, not in use", room.cached,
			    "largest hole %s (reserved %s)", B(room.hole), B(mo->reserved));
	else
		emit_figure(out, FIGURE, "cached, not in use", room.cached, "reserved %s",
			    B(mo->reserved));
	private_pools_print(&pools, &room, FIGURE, out);
	most_line(r, mo, most, out);
	if (d->retries)
		emit_line(out,
			  "  %-22s%10" PRIu64
			  "  times the cache was emptied to make room, which stalls",
			  "allocation retries", d->retries);
}

#define WHO	       44 /* columns for a line of code */
#define UNUSED_LINES   3
#define HOST_LEAST     (1 << 20) /* the framework itself pins less */
#define ROUNDING_LEAST (1 << 19)

/* The lines of code, and one row for the rest. */
struct holders_view {
	struct holders all;
	size_t most;
	char words[40];
};

static bool holder_row(void *ctx, size_t i, struct row_line *row)
{
	struct holders_view *v = ctx;
	const struct holder *h = &v->all.items[i];

	if (i < v->most) {
		*row = (struct row_line){ .owner = h->owner,
					  .bytes = h->bytes,
					  .blocks = h->blocks };
		return true;
	}
	snprintf(v->words, sizeof(v->words), "%s", MANY(v->all.count - v->most, "other line"));
	*row = (struct row_line){ .owner = { .function = v->words, .file = "" } };
	for (; i < v->all.count; i++) {
		row->bytes += v->all.items[i].bytes;
		row->blocks += v->all.items[i].blocks;
	}
	return true;
}

static void holders_table(struct report *r, const struct moment *mo, struct emit *out)
{
	struct holders_view v = { .all = holders_of_blocks(mo, &r->timeline.owners, false),
				  .most = r->top > 0 ? (size_t)r->top : SIZE_MAX };
	struct rows_line rows = { v.all.count > v.most ? v.most + 1 : v.all.count, holder_row, &v };
	const char *bytes = moments_state_only(&r->timeline.model) ? "bytes" : "at peak";
	const struct text_column columns[] = {
		TEXT_COLUMN("allocated at", line_owner, 2, -WHO, .room = WHO, .style = COLUMN_CUT),
		TEXT_COLUMN(bytes, line_bytes, 1, 10),
		TEXT_COLUMN("share", line_bytes, 2, 5, .style = COLUMN_SHARE, .all = mo->bytes),
		TEXT_COLUMN("blocks", line_blocks, 2, 8),
	};

	emit_columns(out, line, &rows, columns, 0);
	emit_line(
		out, "  %.*s", WHO + 28,
		"--------------------------------------------------------------------------------");
	free(v.all.items);
}

/* Requested sizes are known for blocks with tags, and for all blocks of a snapshot. */
static void rounding_line(const struct report *r, const struct moment *mo, struct emit *out)
{
	struct defs_text fact =
		device_fact(&r->timeline.recording->defs, mo->device, "rounding_at_peak");
	uint64_t bytes = strtoull(fact.s, NULL, 10), blocks = 0;
	for (size_t i = 0; i < mo->count && !fact.len; i++) {
		const struct block *b = &mo->blocks[i];
		uint64_t storage = model_storage(&r->timeline.model, b);

		if (!storage || storage >= b->size)
			continue;
		bytes += b->size - storage;
		blocks++;
	}
	if (bytes >= mo->bytes / 1000 && bytes >= ROUNDING_LEAST)
		emit_figure(out, FIGURE, "lost to rounding", bytes, "%s%s",
			    fact.len ? "over the requested sizes"
				     : "at least, over the tensors of ",
			    fact.len ? "" : MANY(blocks, "block"));
}

static void library_lines(struct report *r, const struct moment *mo, struct emit *out)
{
	struct holders all = { 0 };
	uint64_t managed =
		SUM_OF(b, mo->memory, mo->memory_count,
		       b->memory == GMT_MEM_MANAGED && b->device == mo->device ? b->size : 0);
	char what[64];

	if (mo->framework)
		all = holders_of_libraries(mo, &r->timeline.owners);
	for (size_t i = 0; i < all.count; i++) {
		snprintf(what, sizeof(what), "%.60s", all.items[i].inside);
		emit_figure(out, FIGURE, what, all.items[i].bytes,
			    "allocated by that library itself");
	}
	free(all.items);
	if (managed)
		emit_figure(out, FIGURE, "managed memory", managed, "on the device or the host");
	if (mo->context && moment_is_pooled(mo))
		emit_figure(out, FIGURE, "context and free pool", mo->context,
			    "CUDA's own, and what the driver's pool keeps");
	else if (mo->context)
		emit_figure(out, FIGURE, "context and modules", mo->context, "in use, %s",
			    managed ? "with managed memory that is there"
				    : "but not by recorded allocations");
	if (mo->host >= HOST_LEAST)
		emit_figure(out, FIGURE, "pinned host memory", mo->host, "not on the device");
}

/* Prints the peak if each block lived from its first to its last use, and the blocks at the peak
 * that are not used again, with the lines that hold most of them. */
static void used_up_lines(const struct used_up *u, const struct moment *mo, struct emit *out)
{
	uint64_t bound = uses_bound(u->model, mo->device);
	char who[OWNER_WORDS], what[64];

	if (bound != USES_UNKNOWN && bound < mo->bytes - mo->bytes / 100)
		emit_figure(out, FIGURE, "smallest peak", bound,
			    "if each block lived from first to last use");
	if (u->bytes < mo->bytes / 100 || !u->bytes)
		return;
	emit_figure(out, FIGURE, "not used again", u->bytes, "kept after the last use:");
	for (size_t i = 0; i < u->holders.count && i < UNUSED_LINES; i++) {
		const struct holder *h = &u->holders.items[i];

		snprintf(what, sizeof(what), "  %s",
			 owner_words_within(&h->owner, who, sizeof(who), FIGURE - 3));
		emit_figure(out, FIGURE, what, h->bytes, "%s", holder_words(h));
	}
}

/* "step 2, optimizer step, AdamW _foreach_sqrt"; the line of code is printed separately. */
static struct instant when(struct report *r, const struct peak *p)
{
	struct defs_text range = defs_string(&r->timeline.recording->defs, p->range);
	struct instant at = { 0 };

	if (r->timeline.steps.count > 1)
		instant_of_highest(&at, &r->timeline);
	instant_cut_line(&at);
	if (!at.text[0] && range.len)
		snprintf(at.text, sizeof(at.text), "in \"%.60s\"", range.s);
	return at;
}

static void peak_lines(struct report *r, const struct moment *mo, struct emit *out)
{
	const struct model_device *d = &r->timeline.model.devices[mo->device];
	const struct peak *p = &model_curve(d)->peak;
	bool state = moments_state_only(&r->timeline.model),
	     early = p->event.seq <= r->timeline.model.state_seq;
	char title[INSTANT_MAX + 8], who[OWNER_WORDS];
	struct instant at = { 0 };
	const struct peak_words words = {
		&r->timeline.model, mo->device,	      p->bytes, d->total_bytes,
		p->event.seq,	    p->event.time_ns, NULL
	};
	struct owner owner = asking_line(&r->timeline.owners, &p->event);

	if (!early)
		at = when(r, p);
	peak_title(&words, title, sizeof(title));
	if (strlen(title) + 2 + strlen(at.text) < 80) {
		emit_title(out, "%s%s%s", title, at.text[0] ? ", " : "", at.text);
	} else {
		emit_title(out, "%s", title);
		emit_title(out, "%s", instant_line(&at, title, sizeof(title)));
	}
	if (state)
		emit_line(out, "%s",
			  "The snapshot has no trace: whether there was ever more is not known.");
	if (owner.function[0] && !early)
		emit_line(out, "Last allocation: %s for %s", B(p->event.size),
			  owner_words(&owner, who, sizeof(who), 48));
	emit_line(out, "%s", "");
}

static void device_part(struct report *r, size_t i, struct emit *out)
{
	const struct moment *mo = &r->shots[i].moment;
	const struct model_device *d = &r->timeline.model.devices[mo->device];

	peak_lines(r, mo, out);
	if (mo->framework)
		report_classes(r, &r->shots[i], out);
	holders_table(r, mo, out);
	used_up_lines(&r->used_up[i], mo, out);
	report_arena(r, mo, out);
	report_cache(r, mo, &r->pools[i], out);
	rounding_line(r, mo, out);
	library_lines(r, mo, out);
	if (!moments_state_only(&r->timeline.model))
		emit_figure(out, FIGURE, "allocated at the end", model_curve(d)->now, NULL);
	if (model_ooms(d))
		emit_title(out, "  Out of memory %" PRIu64 " time%s, %s%s", model_ooms(d),
			   model_ooms(d) == 1 ? "" : "s",
			   model_ooms(d) != 1 ? "the last time for one of "
			   : d->self_reported ? "for a tensor of "
					      : "for an allocation of ",
			   B(d->oom_asked));
	if (d->self_reported && d->other_fails)
		emit_line(out, "  %-22s%10" PRIu64 "  by calls of other libraries, the last for %s",
			  "failed allocations", d->other_fails, B(d->other_asked));
	emit_line(out, "%s", "");
}

static void trouble_lines(const struct report *r, struct emit *out)
{
	const char *state = recording_state_sentence(recording_state(r->timeline.recording));

	if (r->timeline.model.dropped)
		emit_line(out, "%s %s lost while recording: figures may be too low or too high.",
			  MANY(r->timeline.model.dropped, "event"),
			  r->timeline.model.dropped == 1 ? "was" : "were");
	if (r->timeline.model.left_out)
		emit_line(out, "Bounded: without %s of blocks that came and went.",
			  MANY(r->timeline.model.left_out, "event"));
	if (state)
		emit_paragraph(out, "", "", state);
	if (!r->count)
		emit_line(out, "No device memory was allocated in this recording.");
}

/* Suggests further commands, for a recording with any data. */
static void next_lines(const struct report *r, struct emit *out)
{
	const struct snapshot *shot;
	const struct block *largest;
	char word[SHELL_WORD];
	const char *path = shell_word(r->timeline.recording->path, word);
	uint64_t ooms = SUM_OF(x, r->shots, r->count,
			       model_ooms(&r->timeline.model.devices[x->moment.device]));

	if (!r->count)
		return;
	emit_line(out, "Where next: gpumemtrace html %s -o run.html", path);
	if (ooms)
		emit_line(out, "            gpumemtrace oom %s", path);
	emit_line(out, "            gpumemtrace live %s --at peak", path);
	shot = GREATEST_OF(x, r->shots, r->count, true, x->moment.bytes); /* where `why` looks */
	largest = LARGEST_OF(b, &shot->moment, true);
	if (largest)
		emit_line(out, "            gpumemtrace why %s 0x%" PRIx64, path, largest->addr);
}

void report_text(struct report *r, struct emit *out)
{
	engine_text(&r->engine, &r->timeline, out);
	for (size_t i = 0; i < r->count; i++)
		device_part(r, i, out);
	if (r->each_step)
		report_steps(r, out);
	values_text(&r->values, out);
	trouble_lines(r, out);
	next_lines(r, out);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* verify: reads the whole file and reports every error; exit code 1 if there is one. */
#include <sys/stat.h>

#include "../moments/kept.h"
#include "../recording/recording.h"
#include "../base/ending.h"
#include "../recording/running.h"
#include "command.h"

/* A member of the document that should be 0, and the sentence for when it is not. */
static const struct finding {
	size_t number; /* offset in the document */
	bool counted;  /* the number is printed after the sentence */
	bool fails;    /* else it is only reported */
	const char *text;
} findings[] = {
#define FINDING(member, counted, fails, text)                             \
	{                                                                 \
		offsetof(struct row_verify, member), counted, fails, text \
	}
	FINDING(damaged_header, false, true, "the file header is damaged or missing"),
	FINDING(damaged_blocks, true, true, "damaged blocks, left out"),
	FINDING(skipped_bytes, true, true, "bytes that belong to no block"),
	FINDING(bad_definitions, true, true, "definitions that cannot be read"),
	FINDING(disorder, true, true, "events out of order"),
	FINDING(no_end, false, true,
		"no end mark, and no .live file beside it: the end of the run is lost"),
	FINDING(undefined_stacks, true, false, "events with a stack not defined"),
	FINDING(undefined_strings, true, false, "events with a name not defined"),
	FINDING(undefined_threads, true, false, "events with a thread not defined"),
	FINDING(dropped, true, true, "events that the program could not keep"),
	FINDING(missing_numbers, true, false, "event numbers that are missing"),
#undef FINDING
};
#define FINDINGS (sizeof(findings) / sizeof(findings[0]))

static uint64_t number_of(const struct row_verify *v, const struct finding *f)
{
	return *(const uint64_t *)((const char *)v + f->number);
}

static bool has_live_file(const char *path)
{
	char name[4096];
	struct stat st;

	if (ending_is(path, ".live"))
		return true;
	return snprintf(name, sizeof(name), "%s.live", path) < (int)sizeof(name) &&
	       !stat(name, &st);
}

static bool damage_row(void *ctx, size_t i, struct row_verify_damage *row)
{
	const struct gmt_reader_info *info = ctx;
	const struct gmt_damage *d = &info->damages[i];

	*row = (struct row_verify_damage){ .offset = d->offset,
					   .bytes = d->bytes,
					   .what = d->block ? "block" : "bytes",
					   .live = d->live };
	return true;
}

/* Positions of the first damaged pieces. */
static void places(struct emit *out, const struct recording *r)
{
	const struct gmt_reader_info *i = r->info;

	FOR_EACH (const struct gmt_damage, d, i->damages, i->damages_used)
		emit_line(out,
			  d->block ? "%s: at byte %" PRIu64 "%s: a damaged block of %" PRIu64
				     " bytes"
				   : "%s: at byte %" PRIu64 "%s: %" PRIu64
				     " bytes that belong to no block",
			  r->path, d->offset, d->live ? " of the .live file" : "", d->bytes);
	if (i->damages_used == GMT_DAMAGES)
		emit_line(out, "%s: there may be more; these are the first %d places", r->path,
			  GMT_DAMAGES);
	if (!i->clean_end && !has_live_file(r->path))
		emit_line(out, "%s: at byte %" PRIu64 ": the file ends", r->path, i->file_bytes);
}

/* "events are lost": the file is intact, but the recorder could not write all events. */
static const char *verdict(const struct row_verify *v)
{
	struct row_verify rest = *v;
	bool damaged = false;

	rest.dropped = 0;
	for (const struct finding *f = findings; f < findings + FINDINGS; f++)
		if (f->fails && number_of(&rest, f))
			damaged = true;
	return damaged ? "damaged" : v->ok ? "good" : "events are lost";
}

static void print_faults(struct emit *out, const struct recording *r, const struct row_verify *v)
{
	for (const struct finding *f = findings; f < findings + FINDINGS; f++)
		if (number_of(v, f) && f->counted)
			emit_line(out, "%s: %s: %" PRIu64, r->path, f->text, number_of(v, f));
		else if (number_of(v, f))
			emit_line(out, "%s: %s", r->path, f->text);
	places(out, r);
	emit_line(out, "%s: %s, events: %" PRIu64 ", blocks: %" PRIu64 "%s", r->path, verdict(v),
		  v->events, v->blocks,
		  v->clean_end	      ? ""
		  : running_writes(r) ? ", the program is still running"
				      : ", the program did not end by itself");
}

static int report(struct emit *out, const struct recording *r, const struct tally *t)
{
	const struct gmt_reader_info *i = r->info;
	struct row_verify v = {
		.ok = true,
		.events = t->events + t->left_out,
		.blocks = i->blocks,
		.live_events = i->live_events,
		.clean_end = i->clean_end,
		.damaged_header = i->version == 0,
		.damaged_blocks = i->damaged_blocks,
		.skipped_bytes = i->skipped_bytes,
		.bad_definitions = r->defs.bad,
		.disorder = t->disorder,
		.no_end = !i->clean_end && !has_live_file(r->path),
		.undefined_stacks = t->no_stack,
		.undefined_strings = t->no_string,
		.undefined_threads = t->no_thread,
		.dropped = t->dropped,
		.missing_numbers =
			t->missing - (t->left_out < t->missing ? t->left_out : t->missing),
		.damage = { i->damages_used, damage_row, (void *)i },
	};

	for (const struct finding *f = findings; f < findings + FINDINGS; f++)
		if (f->fails && number_of(&v, f))
			v.ok = false;
	emit_document(out, verify, &v);
	print_faults(out, r, &v);
	return v.ok ? EXIT_OK : EXIT_CHECK;
}

int run_verify(UNUSED const struct verify_options *o, struct emit *out, struct recording *r)
{
	struct tally t;
	int rc = kept_tally(r, &t);

	return rc ? rc : report(out, r, &t);
}

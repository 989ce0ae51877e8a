/* SPDX-License-Identifier: Apache-2.0 */
/* verify: reads everything and says what is wrong with the file; exit code 1 if anything is. */
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#include "../base/emit.h"
#include "../base/say.h"
#include "../recording/recording.h"
#include "../recording/running.h"
#include "../recording/tally.h"
#include "command.h"

struct verify_options {
	const char *file;
};

/* A number that should be 0, and the sentence for when it is not. */
struct finding {
	uint64_t count;
	const char *key;
	bool counted; /* the number stands behind the sentence */
	bool damage;  /* else it is only said */
	const char *text;
};

static bool has_live_file(const char *path)
{
	char name[4096];
	struct stat st;
	size_t len = strlen(path);

	if (len > 5 && !strcmp(path + len - 5, ".live"))
		return true;
	return snprintf(name, sizeof(name), "%s.live", path) < (int)sizeof(name) &&
	       !stat(name, &st);
}

static void print(struct emit *out, const struct recording *r, const struct finding *f)
{
	if (emit_json(out))
		emit_number(out, f->key, f->count);
	else if (f->count && f->counted)
		emit_line(out, "%s: %s: %" PRIu64, r->path, f->text, f->count);
	else if (f->count)
		emit_line(out, "%s: %s", r->path, f->text);
}

static void places_json(struct emit *out, const struct gmt_reader_info *i)
{
	emit_array(out, "damage");
	for (size_t n = 0; n < i->damages_used; n++) {
		const struct gmt_damage *d = &i->damages[n];

		emit_object(out, NULL);
		emit_number(out, "offset", d->offset);
		emit_number(out, "bytes", d->bytes);
		emit_text(out, "what", d->block ? "block" : "bytes");
		emit_flag(out, "live", d->live);
		emit_end(out);
	}
	emit_end(out);
}

/* Where the damage is: the first pieces of it. */
static void places(struct emit *out, const struct recording *r)
{
	const struct gmt_reader_info *i = r->info;

	if (emit_json(out)) {
		places_json(out, i);
		return;
	}
	for (size_t n = 0; n < i->damages_used; n++) {
		const struct gmt_damage *d = &i->damages[n];

		emit_line(out,
			  d->block ? "%s: at byte %" PRIu64 "%s: a damaged block of %" PRIu64
				     " bytes"
				   : "%s: at byte %" PRIu64 "%s: %" PRIu64
				     " bytes that belong to no block",
			  r->path, d->offset, d->live ? " of the .live file" : "", d->bytes);
	}
	if (i->damages_used == GMT_DAMAGES)
		emit_line(out, "%s: there may be more; these are the first %d places", r->path,
			  GMT_DAMAGES);
	if (!i->clean_end && !has_live_file(r->path))
		emit_line(out, "%s: at byte %" PRIu64 ": the file ends", r->path, i->file_bytes);
}

static void json_head(struct emit *out, const struct recording *r, const struct tally *t,
		      bool damaged)
{
	emit_flag(out, "ok", !damaged);
	emit_number(out, "events", t->events);
	emit_number(out, "blocks", r->info->blocks);
	emit_number(out, "live_events", r->info->live_events);
	emit_flag(out, "clean_end", r->info->clean_end);
}

static int report(struct emit *out, const struct recording *r, const struct tally *t)
{
	const struct gmt_reader_info *i = r->info;
	bool header = i->version == 0;
	const struct finding findings[] = {
		{ header, "damaged_header", false, true, "the file header is damaged or missing" },
		{ i->damaged_blocks, "damaged_blocks", true, true, "damaged blocks, left out" },
		{ i->skipped_bytes, "skipped_bytes", true, true, "bytes that belong to no block" },
		{ r->defs.bad, "bad_definitions", true, true, "definitions that cannot be read" },
		{ t->disorder, "disorder", true, true, "events out of order" },
		{ !i->clean_end && !has_live_file(r->path), "no_end", false, true,
		  "no end mark, and no .live file beside it: the end of the run is lost" },
		{ t->no_stack, "undefined_stacks", true, false, "events with a stack not defined" },
		{ t->no_string, "undefined_strings", true, false,
		  "events with a name not defined" },
		{ t->no_thread, "undefined_threads", true, false,
		  "events with a thread not defined" },
		{ t->dropped, "dropped", true, false, "events that the program could not keep" },
		{ t->missing, "missing_numbers", true, false,
		  "numbers in the sequence without event" },
	};
	const size_t count = sizeof(findings) / sizeof(findings[0]);
	bool damaged = false;

	for (size_t n = 0; n < count; n++)
		damaged |= findings[n].damage && findings[n].count;
	emit_object(out, NULL);
	if (emit_json(out))
		json_head(out, r, t, damaged);
	for (size_t n = 0; n < count; n++)
		print(out, r, &findings[n]);
	places(out, r);
	emit_end(out);
	emit_line(out, "%s: %s, events: %" PRIu64 ", blocks: %" PRIu64 "%s", r->path,
		  damaged ? "damaged" : "good", t->events, i->blocks,
		  i->clean_end	      ? ""
		  : running_writes(r) ? ", the program is still running"
				      : ", the program did not end by itself");
	return damaged ? EXIT_CHECK : EXIT_OK;
}

static int run_verify(const void *options, struct emit *out)
{
	const struct verify_options *o = options;
	struct recording r;
	struct tally t = { .defs = &r.defs };
	int rc = recording_open(&r, o->file);

	if (rc)
		return rc;
	rc = recording_run(&r, UINT64_MAX, tally_event, &t);
	if (!rc)
		rc = report(out, &r, &t);
	recording_close(&r);
	return rc;
}

static const struct operand_row operands[] = {
	{ "FILE", OPERAND_RUN, offsetof(struct verify_options, file) },
	{ 0 },
};

const struct command command_verify = {
	.name = "verify",
	.summary = "check that a recording is whole",
	.text = "Reads every block, event and definition. Exit code 0: all is well; 1: something "
		"is damaged "
		"or lost, and what; 3: not a recording at all. A program that was killed leaves a "
		"good "
		"recording as long as its .live file is beside it.",
	.operands = operands,
	.size = sizeof(struct verify_options),
	.run = run_verify,
	.ranks = COMMAND_ROWS,
	.file = offsetof(struct verify_options, file),
};

/* SPDX-License-Identifier: Apache-2.0 */
/* info: what was recorded, of which program, where, how much of it. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../base/emit.h"
#include "../base/human.h"
#include "../base/need.h"
#include "../base/say.h"
#include "../recording/recording.h"
#include "../recording/tally.h"
#include "command.h"

struct info_options {
	const char *file;
	bool modules;
};

static void file_part(struct emit *out, const struct recording *r, const struct tally *t)
{
	const struct gmt_reader_info *i = r->info;
	char start[64] = "", bytes[HUMAN_MAX];
	time_t when = ((int64_t)t->first_ns + i->realtime_minus_monotonic_ns) / 1000000000;
	struct tm tm;

	if (t->events && gmtime_r(&when, &tm))
		strftime(start, sizeof(start), "%Y-%m-%dT%H:%M:%SZ", &tm);
	emit_text(out, "file", r->path);
	emit_number(out, "format_version", i->version);
	emit_number(out, "pid", i->pid);
	emit_text(out, "start", start);
	emit_number(out, "duration_ns", t->last_ns - t->first_ns);
	emit_number(out, "file_bytes", r->file_bytes);
	if (emit_json(out)) {
		emit_number(out, "first_ns", t->first_ns);
		emit_number(out, "last_ns", t->last_ns);
	}
	emit_number(out, "events", t->events);
	emit_line(out, "bytes an event    %.1f (%s)",
		  t->events ? (double)r->file_bytes / t->events : 0,
		  human_bytes(bytes, r->file_bytes));
	emit_number(out, "dropped", t->dropped);
	emit_number(out, "blocks", i->blocks);
	emit_number(out, "damaged_blocks", i->damaged_blocks);
	emit_number(out, "skipped_bytes", i->skipped_bytes);
	emit_number(out, "live_events", i->live_events);
	emit_flag(out, "clean_end", i->clean_end);
	emit_flag(out, "truncated", i->truncated);
}

static void counts_part(struct emit *out, const struct tally *t)
{
	static const struct emit_column columns[] = { { "kind", "kind", EMIT_TEXT },
						      { "count", "events", EMIT_COUNT } };

	emit_line(out, "%s", "");
	emit_table(out, "kinds", columns, 2);
	for (unsigned k = 0; k < TALLY_KINDS; k++) {
		const char *name = k ? gmt_kind_name(k) : "(unknown)";

		if (!t->kinds[k])
			continue;
		emit_cell_text(out, name, strlen(name));
		emit_cell(out, t->kinds[k]);
	}
	emit_table_end(out);
}

static void definitions_part(struct emit *out, const struct defs *d)
{
	const struct {
		const char *name;
		const struct defs_kind *kind;
	} rows[] = { { "strings", &d->strings },
		     { "threads", &d->threads },
		     { "modules", &d->modules },
		     { "codes", &d->codes },
		     { "stack_nodes", &d->nodes } };

	emit_object(out, "definitions");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		emit_number(out, rows[i].name, rows[i].kind->count);
	emit_end(out);
}

/* Arguments end with a zero each. */
static void argv_line(struct emit *out, const struct defs_text *argv)
{
	char *line = need_copy(argv->s, argv->len);
	size_t len = argv->len;

	while (len && !line[len - 1])
		len--;
	for (size_t i = 0; i < len; i++)
		line[i] = line[i] ? line[i] : ' ';
	emit_bytes(out, "argv", line, len);
	free(line);
}

static void meta_part(struct emit *out, const struct defs *d)
{
	size_t count;
	const struct defs_meta *m = defs_metas(d, &count);

	emit_line(out, "%s", "");
	emit_object(out, "meta");
	for (size_t i = 0; i < count; i++) {
		if (!emit_json(out) && !strcmp(m[i].key.s, "argv"))
			argv_line(out, &m[i].value);
		else
			emit_bytes(out, m[i].key.s, m[i].value.s, m[i].value.len);
	}
	emit_end(out);
}

static void modules_part(struct emit *out, const struct defs *d)
{
	static const struct emit_column columns[] = { { "start", "start", EMIT_HEX },
						      { "end", "end", EMIT_HEX },
						      { "build_id", "build id", EMIT_TEXT },
						      { "path", "path", EMIT_TEXT } };
	size_t count;
	const struct defs_module *m = defs_modules(d, &count);
	char id[2 * 64 + 1];

	emit_line(out, "%s", "");
	emit_table(out, "modules", columns, 4);
	for (size_t i = 0; i < count; i++, m++) {
		size_t n = m->build_id.len < 64 ? m->build_id.len : 64;

		for (size_t b = 0; b < n; b++)
			snprintf(id + 2 * b, 3, "%02x", (unsigned char)m->build_id.s[b]);
		emit_cell(out, m->start);
		emit_cell(out, m->end);
		emit_cell_text(out, id, 2 * n);
		emit_cell_text(out, m->path.s, m->path.len);
	}
	emit_table_end(out);
}

static int answer(const void *options, struct emit *out, struct recording *r)
{
	const struct info_options *o = options;
	struct tally t = { .defs = &r->defs };
	int rc = recording_run(r, UINT64_MAX, tally_event, &t);

	if (rc)
		return rc;
	emit_object(out, NULL);
	file_part(out, r, &t);
	definitions_part(out, &r->defs);
	meta_part(out, &r->defs);
	counts_part(out, &t);
	if (o->modules || emit_json(out))
		modules_part(out, &r->defs);
	emit_end(out);
	return 0;
}

static const struct option_row options[] = {
	{ "modules", 0, OPTION_SWITCH, offsetof(struct info_options, modules), NULL,
	  "also list the loaded objects" },
	{ 0 },
};

static const struct operand_row operands[] = {
	{ "FILE", OPERAND_RUN, offsetof(struct info_options, file) },
	{ 0 },
};

const struct command command_info = {
	.name = "info",
	.summary = "what was recorded: program, versions, devices, counts",
	.text = "Prints what the recording knows of the process (command line, versions, devices, "
		"settings "
		"that were off and why), how many events of each kind it has, and whether it is "
		"whole.",
	.options = options,
	.operands = operands,
	.size = sizeof(struct info_options),
	.answer = answer,
	.file = offsetof(struct info_options, file),
	.ranks = COMMAND_ROWS,
};

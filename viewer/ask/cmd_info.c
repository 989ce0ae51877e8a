/* SPDX-License-Identifier: Apache-2.0 */
/* info: a summary of a recording: the program, the machine, the events. */
#include <time.h>

#include "../../format/record.h"
#include "../answers/parts.h"
#include "../moments/kept.h"
#include "../page/page_redact.h"
#include "../recording/recording.h"
#include "../recording/owners.h"
#include "../recording/owner_words.h"
#include "command.h"

/* Data for the lists of the document. */
struct info_view {
	const struct defs *defs;
	const struct tally *tally;
	char start[64];
	char id[2 * 64 + 1]; /* build-id of the current module, in hex */
	char command[4096];
};

static bool kind_row(void *ctx, size_t k, struct row_info_kind *row)
{
	const struct info_view *v = ctx;

	*row = (struct row_info_kind){ .kind = k ? gmt_kind_name((unsigned)k) : "(unknown)",
				       .count = v->tally->kinds[k] };
	return row->count;
}

static bool fact_row(void *ctx, size_t i, struct row_fact *row)
{
	const struct info_view *v = ctx;
	const struct defs_meta *m = v->defs->metas.items;

	*row = (struct row_fact){ .name = m[i].key.s, .value = m[i].value };
	return true;
}

static bool module_row(void *ctx, size_t i, struct row_info_module *row)
{
	struct info_view *v = ctx;
	const struct defs_module *m = (const struct defs_module *)v->defs->modules.items + i;
	size_t n = m->build_id.len < 64 ? m->build_id.len : 64;

	v->id[0] = 0;
	for (size_t b = 0; b < n; b++)
		snprintf(v->id + 2 * b, 3, "%02x", (unsigned char)m->build_id.s[b]);
	*row = (struct row_info_module){
		.start = m->start, .end = m->end, .build_id = v->id, .path = m->path
	};
	return true;
}

static void fill_info(struct row_info *out, struct info_view *v, const struct recording *r)
{
	const struct gmt_reader_info *i = r->info;
	const struct tally *t = v->tally;
	int64_t first = (int64_t)t->first_ns + i->realtime_minus_monotonic_ns;
	struct defs_text started = defs_meta(v->defs, "start_unix_ns");
	time_t when = first / 1000000000;
	struct tm tm;

	/* A snapshot without times has no date. */
	if (t->events && i->realtime_minus_monotonic_ns && gmtime_r(&when, &tm))
		strftime(v->start, sizeof(v->start), "%Y-%m-%dT%H:%M:%SZ", &tm);
	*out = (struct row_info){
		.file = r->path,
		.format_version = i->version,
		.pid = i->pid,
		.start = v->start,
		.duration_ns = t->last_ns - t->first_ns,
		.file_bytes = r->file_bytes,
		.first_ns = t->first_ns,
		.last_ns = t->last_ns,
		.events = t->events + t->left_out,
		.dropped = t->dropped,
		.launches = t->launches,
		.launches_unread = t->launches_unread,
		.blocks = i->blocks,
		.damaged_blocks = i->damaged_blocks,
		.skipped_bytes = i->skipped_bytes,
		.live_events = i->live_events,
		.clean_end = i->clean_end,
		.truncated = i->truncated,
		.definitions = { .strings = v->defs->strings.count,
				 .threads = v->defs->threads.count,
				 .modules = v->defs->modules.count,
				 .codes = v->defs->codes.count,
				 .stack_nodes = v->defs->nodes.count },
		.command = command_words(v->defs, v->command, sizeof(v->command)),
		.has_started_unix_ns = started.len || i->realtime_minus_monotonic_ns,
		.started_unix_ns = started.len ? strtoll(started.s, NULL, 10) : first,
		.run = { RUN_FACTS, run_fact_row, (void *)v->defs },
		.meta = { v->defs->metas.count, fact_row, v },
		.kinds = { TALLY_KINDS, kind_row, v },
		.modules = { v->defs->modules.count, module_row, v },
	};
}

static void print_facts(struct emit *out, const struct row_info *info, bool modules)
{
	static const struct text_column kinds[] = {
		TEXT_COLUMN("kind", info_kind_kind, 2, -1),
		TEXT_COLUMN("events", info_kind_count, 2, 0, .style = COLUMN_PLAIN),
	};
	static const struct text_column objects[] = {
		TEXT_COLUMN("start", info_module_start, 2, 0),
		TEXT_COLUMN("end", info_module_end, 2, 0),
		TEXT_COLUMN("build id", info_module_build_id, 2, -1),
		TEXT_COLUMN("path", info_module_path, 2, -1),
	};
	struct defs_text line;
	struct row_fact fact;
	char bytes[HUMAN_MAX];

	emit_lines(out, info, info, NULL, "file_bytes");
	emit_lines(out, info, info, "events", "events");
	emit_line(out, "bytes an event    %.1f (%s)",
		  info->events ? (double)info->file_bytes / info->events : 0,
		  human_bytes(bytes, info->file_bytes));
	emit_lines(out, info, info, "dropped", "truncated");
	emit_lines(out, info_definitions, &info->definitions, NULL, NULL);
	emit_line(out, "%s", "");
	for (size_t i = 0; i < info->meta.count; i++) {
		info->meta.fill(info->meta.ctx, i, &fact);
		line = strcmp(fact.name, "argv") ? (struct defs_text){ 0 }
						 : argv_line(fact.value.s, fact.value.len);
		if (line.s)
			fact.value = line;
		emit_bytes(out, fact.name, fact.value.s, fact.value.len);
		free((char *)line.s);
	}
	emit_line(out, "%s", "");
	emit_columns(out, info_kind, &info->kinds, kinds, 0);
	if (!modules)
		return;
	emit_line(out, "%s", "");
	emit_columns(out, info_module, &info->modules, objects, 0);
}

int run_info(const struct info_options *o, struct emit *out, struct recording *r)
{
	struct tally t;
	struct info_view v = { .defs = &r->defs, .tally = &t };
	struct redact redact = { 0 };
	struct row_info info;
	int rc = kept_tally(r, &t);

	if (rc)
		return rc;
	if (o->redact)
		redact_facts(&redact, r);
	fill_info(&info, &v, r);
	if (o->redact)
		info.file = owners_base(info.file);
	emit_document(out, info, &info);
	if (!emit_json(out))
		print_facts(out, &info, o->modules);
	redact_free(&redact);
	return 0;
}

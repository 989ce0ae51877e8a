/* SPDX-License-Identifier: Apache-2.0 */
/* dump: every event as one line, with every member that its kind carries, by name. */
#include <inttypes.h>
#include <string.h>

#include "../base/emit.h"
#include "../base/say.h"
#include "../recording/recording.h"
#include "command.h"

struct dump_options {
	const char *file;
	bool defs;
};

/* A member of an event as dump shows it. */
static const struct field {
	unsigned bit;
	const char *key;
	size_t offset;
	unsigned bytes;
	bool hex;
} fields[] = {
#define FIELD(bit, member, hex)                                      \
	{                                                            \
		bit, #member, offsetof(struct gmt_event, member),    \
			sizeof(((struct gmt_event *)0)->member), hex \
	}
	FIELD(F_ADDR, addr, true),	FIELD(F_SIZE, size, false),    FIELD(F_ARG0, arg0, false),
	FIELD(F_ARG1, arg1, false),	FIELD(F_STREAM, stream, true), FIELD(F_SCOPE, scope, false),
	FIELD(F_DEVICE, device, false), FIELD(F_STACK, stack, false),
#undef FIELD
};
#define FIELDS (sizeof(fields) / sizeof(fields[0]))

struct dump {
	struct emit *out;
	const struct recording *recording;
};

static int64_t value(const struct gmt_event *e, const struct field *f)
{
	const char *at = (const char *)e + f->offset;
	uint64_t wide;
	int32_t narrow;

	if (f->bytes == sizeof(wide)) {
		memcpy(&wide, at, sizeof(wide));
		return (int64_t)wide;
	}
	memcpy(&narrow, at, sizeof(narrow));
	return f->bit == F_DEVICE ? narrow : (int64_t)(uint32_t)narrow;
}

static bool has_memory(unsigned kind)
{
	return (kind >= GMT_MEM_ALLOC && kind <= GMT_MEM_FAIL) || kind == GMT_PHYS_CREATE;
}

static void dump_json(const struct dump *d, const struct gmt_event *e)
{
	unsigned has = gmt_kind_fields(e->kind);
	struct defs_text name = defs_string(&d->recording->defs, e->name);

	emit_object(d->out, NULL);
	emit_number(d->out, "seq", e->seq);
	emit_number(d->out, "time_ns", e->time_ns);
	emit_text(d->out, "kind", gmt_kind_name(e->kind));
	emit_number(d->out, "thread", e->thread);
	for (const struct field *f = fields; f < fields + FIELDS; f++) {
		if (f->bit == F_DEVICE && has & F_DEVICE)
			emit_signed(d->out, f->key, e->device);
		else if (has & f->bit)
			emit_number(d->out, f->key, (uint64_t)value(e, f));
	}
	if (has & F_NAME)
		emit_bytes(d->out, "name", name.s, name.len);
	if (has_memory(e->kind))
		emit_text(d->out, "memory", gmt_mem_name(e->arg0));
	emit_number(d->out, "flags", e->flags);
	emit_end(d->out);
}

static const char *flag_names(unsigned flags, char *buf, size_t room)
{
	static const char *const names[] = { "nested",	  "framework", "cupti", "capturing",
					     "truncated", "no_python", "late" };
	size_t len = 0;

	buf[0] = 0;
	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]) && len < room; i++)
		if (flags & 1u << i)
			len += snprintf(buf + len, room - len, "%s%s",
					len ? "|" : " flags=", names[i]);
	return buf;
}

static void dump_text(const struct dump *d, const struct gmt_event *e)
{
	unsigned has = gmt_kind_fields(e->kind);
	char line[512], flags[96];
	size_t len = snprintf(line, sizeof(line), "%" PRIu64 " %" PRIu64 " %s thread=%u", e->seq,
			      e->time_ns, gmt_kind_name(e->kind), e->thread);

	for (const struct field *f = fields; f < fields + FIELDS && len < sizeof(line); f++)
		if (has & f->bit)
			len += snprintf(line + len, sizeof(line) - len,
					f->hex		     ? " %s=0x%" PRIx64
					: f->bit == F_DEVICE ? " %s=%" PRId64
							     : " %s=%" PRIu64,
					f->key, value(e, f));
	emit_line(d->out, "%s%s%s%s%s%s", line, has_memory(e->kind) ? " memory=" : "",
		  has_memory(e->kind) ? gmt_mem_name(e->arg0) : "",
		  flag_names(e->flags, flags, sizeof(flags)), has & F_NAME ? " name=" : "",
		  has & F_NAME ? defs_string(&d->recording->defs, e->name).s : "");
}

static int dump_event(void *ctx, const struct gmt_event *e)
{
	const struct dump *d = ctx;

	if (emit_json(d->out))
		dump_json(d, e);
	else
		dump_text(d, e);
	return 0;
}

static void def_begin(struct emit *out, unsigned kind, uint32_t id)
{
	emit_object(out, NULL);
	emit_text(out, "def", gmt_def_name(kind));
	emit_number(out, "id", id);
}

static void dump_nodes(struct emit *out, const struct defs *d)
{
	const struct defs_node *nodes = d->nodes.items;

	for (size_t i = 0; i < d->nodes.ids.room; i++) {
		const struct map_slot *s = &d->nodes.ids.slots[i];

		if (!s->used)
			continue;
		def_begin(out, GMT_DEF_STACK, s->key);
		emit_number(out, "parent", nodes[s->value].parent);
		emit_number(out, "frame", nodes[s->value].frame);
		emit_number(out, "value", nodes[s->value].value);
		emit_end(out);
	}
}

static void dump_strings(struct emit *out, const struct defs *d)
{
	for (size_t i = 0; i < d->strings.ids.room; i++) {
		const struct map_slot *s = &d->strings.ids.slots[i];
		struct defs_text text;

		if (!s->used)
			continue;
		text = defs_string(d, s->key);
		def_begin(out, GMT_DEF_STRING, s->key);
		emit_bytes(out, "text", text.s, text.len);
		emit_end(out);
	}
}

static void dump_codes(struct emit *out, const struct defs *d)
{
	const struct defs_code *c = d->codes.items;

	for (size_t i = 0; i < d->codes.count; i++, c++) {
		def_begin(out, GMT_DEF_CODE, c->id);
		emit_bytes(out, "name", c->name.s, c->name.len);
		emit_bytes(out, "file", c->file.s, c->file.len);
		emit_number(out, "first_line", c->first_line);
		emit_number(out, "python", c->python);
		emit_number(out, "table_bytes", c->table.len);
		emit_end(out);
	}
}

static void dump_modules(struct emit *out, const struct defs *d)
{
	const struct defs_module *m = d->modules.items;

	for (size_t i = 0; i < d->modules.count; i++, m++) {
		def_begin(out, GMT_DEF_MODULE, m->id);
		emit_bytes(out, "path", m->path.s, m->path.len);
		emit_number(out, "start", m->start);
		emit_number(out, "end", m->end);
		emit_number(out, "bias", m->bias);
		emit_number(out, "seq", m->seq);
		emit_end(out);
	}
}

static void dump_sources(struct emit *out, const struct defs *d)
{
	const struct defs_source *s = d->sources.items;

	for (size_t i = 0; i < d->sources.count; i++, s++) {
		def_begin(out, GMT_DEF_SOURCE, i + 1);
		emit_bytes(out, "file", s->file.s, s->file.len);
		emit_number(out, "line", s->line);
		emit_bytes(out, "text", s->text.s, s->text.len);
		emit_flag(out, "cut", s->flags & GMT_SOURCE_CUT);
		emit_flag(out, "changed", s->flags & GMT_SOURCE_CHANGED);
		emit_end(out);
	}
}

static void dump_symbols(struct emit *out, const struct defs *d)
{
	size_t count;
	const struct defs_symbol *s = defs_symbols(d, &count);

	for (size_t i = 0; i < count; i++, s++) {
		def_begin(out, GMT_DEF_SYMBOL, s->id);
		emit_bytes(out, "name", s->name.s, s->name.len);
		emit_bytes(out, "file", s->file.s, s->file.len);
		emit_number(out, "line", s->line);
		emit_number(out, "address", s->address);
		emit_end(out);
	}
}

static void dump_defs(struct emit *out, const struct defs *d)
{
	const struct defs_meta *m = d->metas.items;
	const struct defs_thread *t = d->threads.items;

	for (size_t i = 0; i < d->metas.count; i++, m++) {
		def_begin(out, GMT_DEF_META, 0);
		emit_bytes(out, "key", m->key.s, m->key.len);
		emit_bytes(out, "value", m->value.s, m->value.len);
		emit_end(out);
	}
	for (size_t i = 0; i < d->threads.count; i++, t++) {
		def_begin(out, GMT_DEF_THREAD, t->id);
		emit_number(out, "tid", t->tid);
		emit_bytes(out, "name", t->name.s, t->name.len);
		emit_end(out);
	}
	dump_modules(out, d);
	dump_codes(out, d);
	dump_symbols(out, d);
	dump_sources(out, d);
	dump_strings(out, d);
	dump_nodes(out, d);
}

static int answer(const void *options, struct emit *out, struct recording *r)
{
	const struct dump_options *o = options;
	struct dump d = { out, r };

	if (!o->defs)
		return recording_run(r, UINT64_MAX, dump_event, &d);
	dump_defs(out, &r->defs);
	return 0;
}

static const struct option_row options[] = {
	{ "defs", 0, OPTION_SWITCH, offsetof(struct dump_options, defs), NULL,
	  "definitions instead of events" },
	{ 0 },
};

static const struct operand_row operands[] = {
	{ "FILE", OPERAND_ONE, offsetof(struct dump_options, file) },
	{ 0 },
};

const struct command command_dump = {
	.name = "dump",
	.summary = "every event of a recording, one a line",
	.text = "Prints every event: number, nanoseconds (CLOCK_MONOTONIC), kind, thread, and the "
		"members "
		"that its kind carries. With --json one object a line.",
	.options = options,
	.operands = operands,
	.size = sizeof(struct dump_options),
	.answer = answer,
	.file = offsetof(struct dump_options, file),
	.ranks = COMMAND_ONE,
};

/* SPDX-License-Identifier: Apache-2.0 */
/* dump: every event as one line, with every member that its kind carries, by name. */
#include "../../format/record.h"
#include "../../format/uses.h"
#include "../recording/recording.h"
#include "../recording/symbols.h"
#include "../recording/variables.h"
#include "command.h"

/* A member of an event as dump shows it. */
static const struct field {
	unsigned bit;
	const char *key;
	size_t offset;
	unsigned bytes;
	bool hex;
	size_t has, row; /* offsets in struct row_dump */
} fields[] = {
#define FIELD(bit, member, hex)                                                                    \
	{                                                                                          \
		bit, #member, offsetof(struct gmt_event, member),                                  \
			sizeof(((struct gmt_event *)0)->member), hex,                              \
			offsetof(struct row_dump, has_##member), offsetof(struct row_dump, member) \
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

static int64_t member_value(const struct gmt_event *e, const struct field *f)
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

/* The fields that are packed into the members of an event about uses. */
struct use_parts {
	bool is_use; /* it has addresses in `places` */
	uint64_t places[GMT_USE_PLACES];
	unsigned count;
	struct defs_text by;
	const char *what;
};

static struct use_parts use_parts(const struct dump *d, const struct gmt_event *e)
{
	static const char *const whats[] = { "",	 "source", "target",  "set",
					     "prefetch", "sent",   "received" };
	struct use_parts u = { .is_use = e->kind == GMT_USE || e->kind == GMT_GRAPH_USE };

	if (u.is_use)
		u.count = gmt_use_places(e, u.places);
	if (e->kind == GMT_USE || e->kind == GMT_TRANSFER)
		u.by = defs_string(&d->recording->defs, gmt_use_by(e));
	if (e->kind == GMT_TRANSFER)
		u.what = whats[e->arg0 < sizeof(whats) / sizeof(*whats) ? e->arg0 : 0];
	return u;
}

static int64_t place_of(const void *ctx, size_t i)
{
	return (int64_t)((const struct use_parts *)ctx)->places[i];
}

static void dump_json(const struct dump *d, const struct gmt_event *e)
{
	unsigned has = gmt_kind_fields(e->kind);
	const struct use_parts u = use_parts(d, e);
	struct row_dump row = { .seq = e->seq,
				.time_ns = e->time_ns,
				.kind = gmt_kind_name(e->kind),
				.thread = e->thread,
				MAYBE_THERE(name, has & F_NAME,
					    defs_string(&d->recording->defs, e->name)),
				MAYBE_THERE(by, u.by.len, u.by),
				MAYBE_THERE(places, u.is_use, { u.count, place_of, &u }),
				MAYBE_THERE(what, u.what, u.what),
				.has_memory = gmt_kind_has_memory(e->kind),
				.flags = e->flags };
	int64_t n;

	for (const struct field *f = fields; f < fields + FIELDS; f++) {
		n = member_value(e, f);
		*(bool *)((char *)&row + f->has) = has & f->bit;
		memcpy((char *)&row + f->row, &n, sizeof(n));
	}
	if (row.has_memory)
		row.memory = gmt_mem_name(e->arg0);
	row.has_refused = e->kind == GMT_REFUSED;
	if (row.has_refused)
		row.refused = gmt_kind_name((unsigned)e->arg0);
	emit_document(d->out, dump, &row);
}

static const char *flag_names(unsigned flags, char *buf, size_t room)
{
	static const char *const names[] = { "nested",	  "framework", "cupti", "capturing",
					     "truncated", "no_python", "late",	"no_tensor",
					     "own_pool",  "more" };

	buf[0] = 0;
	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (flags & 1u << i)
			text_add(buf, room, "%s%s", buf[0] ? "|" : " flags=", names[i]);
	return buf;
}

/* Prints the unpacked fields as text. */
static void use_text(const struct use_parts *u, char *buf, size_t room)
{
	char brief[256], *plain = u->by.len ? demangle(u->by.s) : NULL;

	buf[0] = 0;
	for (unsigned i = 0; i < u->count; i++)
		text_add(buf, room, "%s0x%" PRIx64, i ? "," : " places=", u->places[i]);
	if (u->what)
		text_add(buf, room, " what=%s", u->what);
	if (u->by.len)
		text_add(buf, room, " by=%.200s",
			 plain ? demangle_brief(plain, brief, sizeof(brief)) : u->by.s);
	free(plain);
}

/* " memory=NAME" or " refused=NAME" if arg0 is such a code, else "". */
static const char *meaning_of_arg0(const struct gmt_event *e, char *buf, size_t room)
{
	buf[0] = 0;
	if (gmt_kind_has_memory(e->kind))
		snprintf(buf, room, " memory=%s", gmt_mem_name((unsigned)e->arg0));
	else if (e->kind == GMT_REFUSED)
		snprintf(buf, room, " refused=%s", gmt_kind_name((unsigned)e->arg0));
	return buf;
}

static void dump_text(const struct dump *d, const struct gmt_event *e)
{
	unsigned has = gmt_kind_fields(e->kind);
	const struct use_parts u = use_parts(d, e);
	unsigned packed = u.is_use ? F_ADDR | F_SIZE | F_ARG0 | F_ARG1
			  : u.what ? F_ARG0 | F_ARG1
				   : 0;
	char line[512], flags[96], use[512], meaning[64];
	size_t len = snprintf(line, sizeof(line), "%" PRIu64 " %" PRIu64 " %s thread=%u", e->seq,
			      e->time_ns, gmt_kind_name(e->kind), e->thread);

	for (const struct field *f = fields; f < fields + FIELDS && len < sizeof(line); f++)
		if (has & ~packed & f->bit)
			len += snprintf(line + len, sizeof(line) - len,
					f->hex		     ? " %s=0x%" PRIx64
					: f->bit == F_DEVICE ? " %s=%" PRId64
							     : " %s=%" PRIu64,
					f->key, member_value(e, f));
	use_text(&u, use, sizeof(use));
	emit_line(d->out, "%s%s%s%s%s%s", line, use, meaning_of_arg0(e, meaning, sizeof(meaning)),
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

/* Prints a row as JSON or as lines of text. */
#define EMIT(out, table, ...)                                    \
	do {                                                     \
		const struct row_##table row_ = { __VA_ARGS__ }; \
		emit_document(out, table, &row_);                \
		emit_lines(out, table, &row_, NULL, NULL);       \
	} while (0)

static void dump_nodes(struct emit *out, const struct defs *d)
{
	const struct defs_node *nodes = d->nodes.items;

	FOR_EACH (const struct map_slot, s, d->nodes.ids.slots, d->nodes.ids.room)
		if (s->used)
			EMIT(out, dump_node, .def = gmt_def_name(GMT_DEF_STACK), .id = s->key,
			     .parent = nodes[s->value].parent, .frame = nodes[s->value].frame,
			     .value = nodes[s->value].value);
}

static void dump_strings(struct emit *out, const struct defs *d)
{
	FOR_EACH (const struct map_slot, s, d->strings.ids.slots, d->strings.ids.room)
		if (s->used)
			EMIT(out, dump_string, .def = gmt_def_name(GMT_DEF_STRING), .id = s->key,
			     .text = defs_string(d, s->key));
}

/* Prints every definition of a list, in the order of the recording. */
#define EMIT_ALL(list, type, table, kind, ...)                                              \
	do {                                                                                \
		const struct type *x = d->list.items;                                       \
		for (size_t i = 0; i < d->list.count; i++, x++)                             \
			EMIT(out, table, .def = gmt_def_name(GMT_DEF_##kind), __VA_ARGS__); \
	} while (0)

static void dump_variables(struct emit *out, const struct defs *d)
{
	const struct defs_variables *frames = d->frames.items;
	char shape[VARIABLE_SHAPE];

	FOR_EACH (const struct defs_variables, x, frames, d->frames.count)
		for (uint32_t i = 0; i < x->count; i++) {
			const struct defs_variable *v = defs_variable(d, x, i);

			EMIT(out, dump_variable, .def = gmt_def_name(GMT_DEF_VARIABLES),
			     .seq = x->seq, .stack = x->node, .name = v->name,
			     .shape = variables_shape(v, shape), .type = variables_type(v),
			     .tensors = v->head.tensors, .address = v->head.addr,
			     .bytes = v->head.bytes);
		}
}

static void dump_defs(struct emit *out, const struct defs *d)
{
	EMIT_ALL(metas, defs_meta, dump_fact, META, .key = x->key, .value = x->value);
	EMIT_ALL(threads, defs_thread, dump_thread, THREAD, .id = x->id, .tid = x->tid,
		 .name = x->name);
	EMIT_ALL(modules, defs_module, dump_module, MODULE, .id = x->id, .path = x->path,
		 .start = x->start, .end = x->end, .bias = x->bias, .seq = x->seq);
	EMIT_ALL(codes, defs_code, dump_code, CODE, .id = x->id, .name = x->name, .file = x->file,
		 .first_line = x->first_line, .python = x->python, .table_bytes = x->table.len);
	EMIT_ALL(symbols, defs_symbol, dump_symbol, SYMBOL, .id = x->id, .name = x->name,
		 .file = x->file, .line = x->line, .address = x->address);
	EMIT_ALL(sources, defs_source, dump_source, SOURCE, .id = i + 1, .file = x->file,
		 .line = x->line, .text = x->text, .cut = x->flags & GMT_SOURCE_CUT,
		 .changed = x->flags & GMT_SOURCE_CHANGED);
	dump_strings(out, d);
	dump_nodes(out, d);
	dump_variables(out, d);
}

int run_dump(const struct dump_options *o, struct emit *out, struct recording *r)
{
	struct dump d = { out, r };

	if (!o->defs)
		return recording_run(r, dump_event, &d);
	dump_defs(out, &r->defs);
	return 0;
}

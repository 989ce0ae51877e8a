/* SPDX-License-Identifier: Apache-2.0 */
/* stack: the frames of one stack id, Python and native merged, innermost first. The first event
 * with the stack says which libraries were loaded, so events are read up to that one. */
#include "../recording/recording.h"
#include "../recording/symbols.h"
#include "../recording/owners.h"
#include "../recording/stacks.h"
#include "../recording/variables.h"
#include "command.h"

/* The statement, "" if the recording does not have it. */
static const char *statement(const struct stacks *s, const struct frame *f)
{
	const struct defs_source *source = defs_source(s->defs, f->file, f->line);

	return f->python && source ? source->text.s : "";
}

#define VARIABLES_MOST 64
#define VARIABLES_TEXT 4096

/* A stack and the options that select its frames. */
struct stack_view {
	const struct stack_options *options;
	const struct stacks *stacks;
	struct variable_at variables[VARIABLES_MOST];
	size_t variable_count;
	char text[VARIABLES_TEXT];
};

/* "x [8, 4096] float32, kept 3, first [8] float32"; "" if none is known. */
static const char *variables_of_frame(struct stack_view *v, const struct frame *f)
{
	v->text[0] = 0;
	for (size_t i = 0; i < v->variable_count && f->python; i++) {
		const struct variable_at *x = &v->variables[i];
		char form[VARIABLE_FORM];

		if (x->owner.line != f->line || strcmp(x->owner.file, f->file) != 0 ||
		    strcmp(x->owner.function, f->function) != 0)
			continue;
		text_add(v->text, sizeof(v->text), "%s%s %s", v->text[0] ? ", " : "",
			 x->variable->name.s, variables_form(x->variable, form));
	}
	return v->text;
}

static void print_stack_frame(struct emit *out, struct stack_view *v, const struct frame *f)
{
	const struct stack_options *o = v->options;
	const struct stacks *s = v->stacks;
	const char *kind = f->python ? "python" : "native", *name = f->function;
	char brief[200];

	if (!name[0])
		name = "??";
	else if (!f->python && !o->full)
		name = demangle_brief(name, brief, sizeof(brief));
	if (f->file[0])
		emit_line(out, "  %s %s (%s:%u)", kind, name, f->file, f->line);
	else if (f->module[0])
		emit_line(out, "  %s %s (%s+0x%" PRIx64 ")", kind, name,
			  o->full ? f->module : owners_base(f->module), f->offset);
	else
		emit_line(out, "  %s %s [0x%" PRIx64 "]", kind, name, f->ip);
	if (statement(s, f)[0])
		emit_line(out, "           %s", statement(s, f));
	if (variables_of_frame(v, f)[0])
		emit_paragraph(out, "           with ", "                ", v->text);
}

static bool is_wanted(const struct stack_view *v, const struct frame *f)
{
	return v->options->python == v->options->native || f->python == v->options->python;
}

static bool frame_row(void *ctx, size_t i, struct row_stack_frame *row)
{
	struct stack_view *v = ctx;
	const struct frame *f = &v->stacks->frames[i];
	const char *text = statement(v->stacks, f), *with = variables_of_frame(v, f);

	*row = (struct row_stack_frame){ .kind = f->python ? "python" : "native",
					 .function = f->function,
					 .file = f->file[0] || f->python ? f->file : f->module,
					 .line = f->line,
					 MAYBE_THERE(text, text[0], text),
					 MAYBE_THERE(variables, with[0], with) };
	return is_wanted(v, f);
}

/* The stacks to show, each with the number of its first event. */
struct wanted {
	bool all;
	struct map first; /* id -> index in stacks */
	struct wanted_stack {
		uint32_t id;
		uint64_t seq;
	} * stacks;
	size_t count, room;
};

static int note_first_event(void *ctx, const struct gmt_event *e)
{
	struct wanted *w = ctx;
	bool fresh;
	uint32_t *at;

	if (!e->stack || (!w->all && e->stack != w->stacks[0].id))
		return 0;
	if (!w->all) {
		w->stacks[0].seq = e->seq;
		return 1;
	}
	at = map_put(&w->first, e->stack, &fresh);
	if (!fresh)
		return 0;
	*at = w->count;
	*need_item(w->stacks, w->count, w->room) = (struct wanted_stack){ e->stack, e->seq };
	return 0;
}

static void show_stacks(struct emit *out, const struct recording *r, const struct stack_options *o,
			const struct wanted *w)
{
	struct stacks stacks;
	struct stack_view v = { .options = o, .stacks = &stacks };
	struct row_stack row;

	stacks_init(&stacks, &r->defs, symbols_new(&r->defs));
	for (size_t i = 0; i < w->count; i++) {
		v.variable_count = variables_at(&stacks, w->stacks[i].id, w->stacks[i].seq,
						v.variables, VARIABLES_MOST);
		stacks_read(&stacks, w->stacks[i].id, w->stacks[i].seq);
		row = (struct row_stack){ MAYBE_THERE(stack, w->all, w->stacks[i].id),
					  .frames = { stacks.count, frame_row, &v } };
		emit_document(out, stack, &row);
		if (w->all)
			emit_title(out, "stack %u", w->stacks[i].id);
		for (size_t k = 0; k < stacks.count; k++)
			if (is_wanted(&v, &stacks.frames[k]))
				print_stack_frame(out, &v, &stacks.frames[k]);
	}
	symbols_free(stacks.symbols);
	stacks_free(&stacks);
}

static int answer_stacks(struct emit *out, struct recording *r, const struct stack_options *o)
{
	struct wanted w = { .all = o->all };
	int rc;

	if (!o->all && !defs_node(&r->defs, o->number))
		return say_usage("%s has no stack %u", o->file, o->number);
	if (!o->all) {
		w.stacks = need_grow(NULL, &w.room, 0, sizeof(*w.stacks));
		w.stacks[w.count++] = (struct wanted_stack){ o->number, UINT64_MAX };
	}
	rc = recording_run(r, note_first_event, &w);
	if (!rc)
		show_stacks(out, r, o, &w);
	map_free(&w.first);
	free(w.stacks);
	return rc;
}

/* A missing ID is reported here and not in check_stack, so that a folder without a recording is
 * reported first. */
int run_stack(const struct stack_options *o, struct emit *out)
{
	struct recording r;
	int rc;

	if (!o->id && !o->all)
		return say_usage("ID is missing; see gpumemtrace stack --help");
	rc = recording_open(&r, o->file);
	if (rc)
		return rc;
	rc = answer_stacks(out, &r, o);
	recording_close(&r);
	return rc;
}

int check_stack(struct stack_options *o)
{
	unsigned long value;
	char *end;

	if (o->id && o->all)
		return say_usage("an ID or --all, not both");
	if (!o->id)
		return 0;
	errno = 0;
	value = strtoul(o->id, &end, 0);
	if (errno || end == o->id || *end || o->id[0] == '-' || value > UINT32_MAX)
		return say_usage("a stack's id is a number (see gpumemtrace live), not \"%s\"",
				 o->id);
	if (!value)
		return say_usage("stack 0 means that no stack was recorded");
	o->number = (uint32_t)value;
	return 0;
}

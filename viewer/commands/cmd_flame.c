/* SPDX-License-Identifier: Apache-2.0 */
/* flame: the blocks of a moment by the frames that led to them, as folded stacks or as a picture.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "../answers/flame.h"
#include "../base/human.h"
#include "../base/need.h"
#include "../base/outfile.h"
#include "../base/say.h"
#include "../documents/document.h"
#include "../moments/moments.h"
#include "class_option.h"
#include "command.h"

struct flame_options {
	const char *file, *at, *output, *frames, *by, *class;
	long device;
	bool inverted, classes;
};

struct choice {
	const char *word;
	int value;
};

/* 0, or a sentence was said. */
static int choose(const char *option, const char *word, const struct choice *choices, int *value)
{
	char all[64] = "";

	for (; choices->word; choices++) {
		if (!strcmp(word, choices->word)) {
			*value = choices->value;
			return 0;
		}
		snprintf(all + strlen(all), sizeof(all) - strlen(all), "%s%s", all[0] ? ", " : "",
			 choices->word);
	}
	return say_error(EXIT_USAGE, "--%s \"%s\" is not one of %s", option, word, all);
}

static int parse(const struct flame_options *o, struct flame_how *how)
{
	static const struct choice frames[] = { { "python", FRAMES_PYTHON },
						{ "native", FRAMES_NATIVE },
						{ "both", FRAMES_BOTH },
						{ 0 } };
	static const struct choice by[] = { { "stack", 0 }, { "module", 1 }, { 0 } };
	int which = FRAMES_PYTHON, modules = 0;
	size_t len = o->output ? strlen(o->output) : 0;

	*how = (struct flame_how){ .inverted = o->inverted, .classes = o->classes, .category = -1 };
	if (o->class && class_option(o->class, &how->category))
		return EXIT_USAGE;
	if ((o->frames && choose("frames", o->frames, frames, &which)) ||
	    (o->by && choose("by", o->by, by, &modules)))
		return EXIT_USAGE;
	how->frames = (enum flame_frames)which;
	how->modules = modules;
	if (o->output && (len < 4 || strcmp(o->output + len - 4, ".svg")))
		return say_error(EXIT_USAGE,
				 "-o %s: the name of a picture must end with .svg; folded stacks "
				 "go to stdout",
				 o->output);
	return 0;
}

/* The frames of a node, outermost first. */
static size_t path_of(const struct flame *f, uint32_t at, const char **names, size_t room)
{
	size_t n = 0, depth = 0;

	for (uint32_t i = at; i; i = f->nodes[i].parent)
		depth++;
	for (uint32_t i = at; i; i = f->nodes[i].parent)
		if (--depth < room) {
			names[depth] = f->nodes[i].name;
			n++;
		}
	return n;
}

/* "outer;inner bytes": a semicolon in a name becomes a comma. */
static void folded(struct emit *out, const struct flame *f, uint32_t at)
{
	const char *names[STACKS_DEPTH];
	size_t n = path_of(f, at, names, STACKS_DEPTH), len = 1;
	char *line, *to;

	for (size_t i = 0; i < n; i++)
		len += strlen(names[i]) + 1;
	to = line = need_new(len);
	for (size_t i = 0; i < n; i++) {
		for (const char *s = names[i]; *s; s++)
			*to++ = *s == ';' ? ',' : *s;
		*to++ = i + 1 < n ? ';' : 0;
	}
	emit_line(out, "%s %" PRIu64, line, f->nodes[at].own_bytes);
	free(line);
}

struct view {
	const struct flame *flame;
	const char *names[STACKS_DEPTH]; /* frames of the stack that is being written */
};

static const char *name_of(const void *ctx, size_t i)
{
	const struct view *v = ctx;

	return v->names[i];
}

static bool stack_row(void *ctx, size_t i, struct row_flame_stack *row)
{
	struct view *v = ctx;
	const struct flame_node *node = &v->flame->nodes[i];

	if (!i || !node->own_blocks)
		return false;
	*row = (struct row_flame_stack){
		.frames = { path_of(v->flame, (uint32_t)i, v->names, STACKS_DEPTH), name_of, v },
		.bytes = node->own_bytes,
		.blocks = node->own_blocks,
	};
	return true;
}

static void print(struct emit *out, const struct flame *f, const struct snapshot *s)
{
	struct view view = { .flame = f };
	struct row_flame row = { .device = s->moment.device,
				 .time_ns = s->moment.time_ns,
				 .bytes = f->nodes[0].bytes,
				 .blocks = f->nodes[0].blocks,
				 .stacks = { f->count, stack_row, &view } };

	emit_document(out, flame, &row);
	if (emit_json(out))
		return;
	for (uint32_t i = 1; i < f->count; i++)
		if (f->nodes[i].own_blocks)
			folded(out, f, i);
}

static int write_svg(struct emit *out, const struct flame *f, const struct snapshot *s,
		     const struct flame_options *o)
{
	char title[200], bytes[HUMAN_MAX], when[MOMENTS_WHEN];
	struct row_flame_file row;
	struct outfile file;
	int rc = outfile_open(&file, o->output, FLAME_HEAD, "a flame graph");

	if (rc)
		return rc;
	snprintf(title, sizeof(title), "%.80s: %s on device %d%s (%.40s)", owners_base(o->file),
		 human_bytes(bytes, f->nodes[0].bytes), s->moment.device,
		 moments_when(s->model, s->moment.seq, s->moment.time_ns, when, sizeof(when)),
		 o->at ? o->at : "peak");
	flame_svg(f, title, file.f);
	rc = outfile_commit(&file);
	if (rc)
		return rc;
	row = (struct row_flame_file){ .file = o->output, .bytes = f->nodes[0].bytes };
	emit_document(out, flame_file, &row);
	emit_line(out, "%s: %s, opens in any browser", o->output, title);
	return 0;
}

/* Everything between the recording and the tree. */
static int answer(struct emit *out, struct recording *r, const struct flame_options *o,
		  const struct flame_how *how, struct moment_query *q)
{
	struct model model;
	struct snapshot s = { .model = &model };
	struct stacks stacks;
	struct owners owners;
	struct flame f;
	int rc = moments_one(r, &model, &s.moment, q, o->device);

	if (rc)
		return rc;
	stacks_init(&stacks, &r->defs, symbols_new(&r->defs));
	owners_init(&owners, &stacks);
	snapshot_sort(&s, &owners);
	flame_build(&f, &s, &owners, how);
	if (!f.nodes[0].blocks)
		say_note("%s: nothing%s%s is alive at that moment; --at names another", o->file,
			 o->class ? " of class " : "", o->class ? o->class : "");
	if (o->output)
		rc = write_svg(out, &f, &s, o);
	else
		print(out, &f, &s);
	flame_free(&f);
	owners_free(&owners);
	symbols_free(stacks.symbols);
	stacks_free(&stacks);
	snapshot_free(&s);
	model_free(&model);
	return rc;
}

static int run_flame(const void *options, struct emit *out)
{
	const struct flame_options *o = options;
	struct flame_how how;
	struct moment_query q;
	struct recording r;
	int rc = parse(o, &how);

	if (!rc)
		rc = moments_parse(o->at ? o->at : "peak", &q);
	if (!rc)
		rc = recording_open(&r, o->file);
	if (rc)
		return rc;
	rc = answer(out, &r, o, &how, &q);
	recording_close(&r);
	return rc;
}

static void defaults(void *options)
{
	struct flame_options *o = options;

	o->device = -1;
}

#define OPTION(name, letter, kind, member, argument, help)                                 \
	{                                                                                  \
		name, letter, kind, offsetof(struct flame_options, member), argument, help \
	}

static const struct option_row options[] = {
	OPTION("output", 'o', OPTION_TEXT, output, "X.svg", "a picture, in place of folded stacks"),
	OPTION("at", 0, OPTION_TEXT, at, "MOMENT", "as for live; default peak"),
	OPTION("frames", 0, OPTION_TEXT, frames, "KIND", "python (default), native or both"),
	OPTION("by", 0, OPTION_TEXT, by, "WHAT", "stack (default), or module: of the forward pass"),
	OPTION("class", 0, OPTION_TEXT, class, "CLASS", "only blocks of this class"),
	OPTION("classes", 0, OPTION_SWITCH, classes, NULL, "the class is the outermost frame"),
	OPTION("inverted", 0, OPTION_SWITCH, inverted, NULL, "innermost frames first"),
	OPTION("device", 0, OPTION_NUMBER, device, "N",
	       "device; default: the one with the highest peak"),
	{ 0 },
};

static const struct operand_row operands[] = {
	{ "FILE", OPERAND_ONE, offsetof(struct flame_options, file) },
	{ 0 },
};

const struct command command_flame = {
	.name = "flame",
	.summary = "a flame graph of a moment, or folded stacks",
	.text = "Sums up the blocks of a moment by the frames that led to them. Without -o, one "
		"line for each stack on stdout: frames from the outermost to the innermost with "
		"semicolons between them, a space, the bytes; flame-graph tools read that. With -o "
		"an SVG that stands alone: a click enlarges a frame, / searches.",
	.options = options,
	.operands = operands,
	.size = sizeof(struct flame_options),
	.defaults = defaults,
	.run = run_flame,
	.ranks = COMMAND_ONE,
	.file = offsetof(struct flame_options, file),
};

/* SPDX-License-Identifier: Apache-2.0 */
/* advise: what would lower the peak, and by how much. */
#include "../advise/advise.h"
#include "../advise/patterns.h"
#include "../advise/together.h"
#include "../answers/columns.h"
#include "../answers/large_line.h"
#include "../recording/owner_words.h"
#include "../answers/unclassed.h"
#include "command.h"

#define MUCH 10 /* divisor: 1/10 of the peak */

static const char *const known[] = {
	[KNOWN_computed] = "computed",
	[KNOWN_replayed] = "replayed",
	[KNOWN_run] = "run",
};

static bool finding_row(void *ctx, size_t i, struct row_advise_finding *row)
{
	const struct advise *a = ctx;
	const struct finding *f = &a->items[i];

	*row = (struct row_advise_finding){ .what = f->what,
					    .saves_bytes = f->saves,
					    .how_known = known[f->known],
					    .owner = f->owner,
					    .kind = f->kind,
					    .of = f->reserved ? "reserved" : "allocated",
					    .peak_bytes = f->peak,
					    .exact = !f->about && f->least == f->saves,
					    .least_bytes = f->least,
					    .evidence = f->how,
					    .right = f->measured.right,
					    .tried = f->measured.of };
	return true;
}

static void text_finding(struct emit *out, const struct advise *a, const struct finding *f)
{
	char saves[HUMAN_MAX], least[HUMAN_MAX], peak[HUMAN_MAX], most[HUMAN_MAX + 8] = "";
	char line[ADVISE_TEXT + 300], place[OWNER_WORDS], right[60] = "";
	uint64_t all = f->reserved ? a->reserved : a->peak;
	const char *about = f->about ? "About " : "";

	human_bytes(saves, f->saves);
	if (!strcmp(saves, human_bytes(least, f->least)))
		snprintf(line, sizeof(line), "%s%s less (%s): %s", about, saves,
			 PERCENT(f->saves, all), f->what);
	else
		snprintf(line, sizeof(line), "%s%s to %s less (%s%s): %s", about, least, saves,
			 f->about ? "" : "at most ", PERCENT(f->saves, all), f->what);
	if (f->about && strcmp(human_apart(peak, f->peak, all),
			       human_apart(least, f->peak + f->saves - f->least, all)))
		snprintf(most, sizeof(most), " to %s", least);
	emit_paragraph(out, "- ", "  ", line);
	if (f->owner.function)
		emit_line(out, "    %s", owner_words(&f->owner, place, sizeof(place), 0));
	claim_say(&f->measured, right, sizeof(right));
	snprintf(line, sizeof(line), "%s%s. Then the %s is %s%s%s.", f->how, right,
		 f->reserved ? "most that is reserved" : "peak",
		 f->about		? "about "
		 : f->least == f->saves ? ""
					: "at least ",
		 human_apart(peak, f->peak, all), most);
	emit_paragraph(out, "    ", "    ", line);
	emit_line(out, "%s", "");
}

/* Names changes that cannot be found without tags, and the classes that hold most of the peak. */
static void text_without_tags(struct emit *out, const struct advise *a)
{
	struct timeline *t = a->timeline;
	char text[900] = "Recorded without autograd's tags, so some changes cannot be found: those "
			 "about graphs, results that live too long, and unused weights.";
	struct unclassed u;
	struct snapshot s;

	snapshot_take(&s, t, model_curve(&t->model.devices[t->device])->peak.event.seq);
	unclassed_find(&u, t, &s);
	if (s.bytes[CATEGORY_activations] >= a->peak / 2)
		text_add(text, sizeof(text),
			 " Most of the peak, %s (%s), are activations: torch.utils.checkpoint "
			 "around each layer keeps its inputs alone. A recording by gpumemtrace "
			 "run shows by how much.",
			 B(s.bytes[CATEGORY_activations]),
			 PERCENT(s.bytes[CATEGORY_activations], a->peak));
	unclassed_add(&u, a->peak, text, sizeof(text));
	emit_paragraph(out, "", "", text);
	moment_free(&s.moment);
}

static void print_findings(struct emit *out, const struct advise *a, struct row_advise *row,
			   long top)
{
	size_t most = top > 0 && (size_t)top < a->count ? (size_t)top : a->count;
	char reserved[HUMAN_MAX], line[INSTANT_MAX + 8];
	struct instant at;
	bool apart = emit_screen() && strlen(row->peak_when) + 52 > emit_screen();

	instant_of_highest(&at, a->timeline);
	emit_title(out, "Peak %s on device %d (%s reserved)%s%s", B(a->peak), a->timeline->device,
		   human_bytes(reserved, a->reserved), *row->peak_when && !apart ? ": " : "",
		   apart ? "" : row->peak_when);
	if (apart)
		emit_title(out, "%s", instant_line(&at, line, sizeof(line)));
	emit_line(out, "%s", "");
	if (!a->count)
		emit_line(out, "Nothing was found that would lower it by 1 %% or more.");
	for (size_t i = 0; i < most; i++)
		text_finding(out, a, &a->items[i]);
	if (most < a->count)
		emit_line(out, "... and %zu smaller ones (--top 0 for all)", a->count - most);
	if (row->look_at[0])
		emit_paragraph(out, "", "", row->look_at);
	if (!advise_knows_graphs(a) && a->timeline->framework)
		text_without_tags(out, a);
	if (a->count > 1)
		emit_paragraph(out, "", "",
			       "Each saving is of that change alone: they do not add "
			       "up. Record the changed program and ask again.");
}

static void print_patterns(struct emit *out, const struct advise *a, struct row_advise *row,
			   long top)
{
	static const struct text_column columns[] = {
		TEXT_COLUMN("pattern", advise_pattern_words, 2, -18, .style = COLUMN_KEY),
		TEXT_COLUMN("allocated at", advise_pattern_owner, 2, -1, .room = 32,
			    .style = COLUMN_CUT),
		TEXT_COLUMN("blocks", advise_pattern_blocks, 1, 6),
		TEXT_COLUMN("bytes", advise_pattern_bytes, 2, 9),
		TEXT_COLUMN("at peak", advise_pattern_at_peak_bytes, 2, 9),
		TEXT_COLUMN("longest", advise_pattern_longest_ns, 2, 7),
		TEXT_COLUMN("copying", advise_pattern_copy_ns, 2, 7,
			    .when = AT_advise_pattern_waits),
		TEXT_COLUMN("", advise_pattern_copy, 1, -1),
	};

	emit_title(out, "Patterns of use on device %d, peak %s", a->timeline->device, B(a->peak));
	emit_line(out, "%s", "");
	if (!row->patterns.count) {
		emit_line(out, "%s",
			  row->uses_known ? "None holds 1 % of the peak."
					  : "The recording does not have all uses of memory.");
		return;
	}
	emit_top(out, advise_pattern, &row->patterns, columns, top, "  ");
	emit_line(out, "%s", "");
	emit_paragraph(
		out, "", "",
		"copying: to the host and back at 25 GB/s each way (PCIe 4.0 x16), beside the "
		"shortest pause. Times are those of the launches; on a simulated device "
		"kernels take no time.");
}

/* A sentence about the line that holds most at the peak; "" if a finding saves 1/MUCH of it. */
static const char *line_of(struct advise *a, char text[LARGE_LINE_ALL])
{
	struct large_line l;

	text[0] = 0;
	if (!ANY_OF(f, a->items, a->count,
		    !f->reserved && !f->library && f->least >= a->peak / MUCH) &&
	    large_line_at_peak(&l, a->timeline))
		text_put(text, LARGE_LINE_ALL, l.change[0] ? "%s Look at that line: %s." : "%s",
			 l.text, l.change);
	return text;
}

struct sets {
	char **texts;
	struct together *items;
	size_t count;
};

/* check_advise has checked the sets, except the numbers of their findings. */
static int find_sets(struct sets *s, struct advise *a, char **texts)
{
	for (s->texts = texts; texts && texts[s->count];)
		s->count++;
	s->items = need_new((s->count + 1) * sizeof(*s->items));
	for (size_t i = 0; i < s->count; i++) {
		together_parse(&s->items[i], texts[i]);
		if (ANY_OF(x, s->items[i].findings, s->items[i].count, *x >= a->count))
			return say_usage("--together %s: the findings are %zu", texts[i], a->count);
	}
	together_find(a, s->items, s->count);
	return 0;
}

static bool set_row(void *ctx, size_t i, struct row_advise_set *row)
{
	const struct sets *s = ctx;

	*row = (struct row_advise_set){ .changes = s->texts[i],
					.peak_bytes = s->items[i].peak,
					.at_most_bytes = s->items[i].at_most };
	return true;
}

static void print_sets(struct emit *out, const struct sets *s)
{
	FOR_EACH (const struct together, x, s->items, s->count) {
		char least[HUMAN_MAX], most[HUMAN_MAX];

		bool range = strcmp(human_bytes(least, x->peak), human_bytes(most, x->at_most));

		emit_line(out, "With %s the peak is %s%s%s.", s->texts[x - s->items], least,
			  range ? " to " : "", range ? most : "");
	}
}

static void show_findings(struct emit *out, struct advise *a, const struct advise_options *o,
			  const struct sets *sets)
{
	struct timeline *t = a->timeline;
	struct patterns patterns;
	char line[LARGE_LINE_ALL];
	struct instant instant;
	struct row_advise row;

	patterns_find(&patterns, t);
	instant_of_highest(&instant, t);
	row = (struct row_advise){ .device = t->device,
				   .peak_bytes = a->peak,
				   .peak_reserved_bytes = a->reserved,
				   .peak_when = instant.text,
				   .graphs_known = advise_knows_graphs(a),
				   .look_at = line_of(a, line),
				   .findings = { a->count, finding_row, a },
				   .uses_known = patterns.known,
				   .patterns = { patterns.count, NULL, patterns.items },
				   .has_sets = sets->count,
				   .sets = { sets->count, set_row, (void *)sets } };
	emit_document(out, advise, &row);
	(o->patterns ? print_patterns : print_findings)(out, a, &row, o->top);
	print_sets(out, sets);
	free(patterns.items);
}

int advise_recording(const struct advise_options *o, const char *path,
		     int (*try)(void *ctx, struct advise *a), void *ctx, struct emit *out)
{
	struct recording r;
	struct timeline t = { 0 };
	struct sets sets = { 0 };
	struct advise a;
	int rc = recording_open(&r, path);

	if (rc)
		return rc;
	rc = timeline_open(&t, &r, o->device);
	if (!rc) {
		advise_open(&a, &t, true);
		if (try)
			rc = try(ctx, &a);
		rc = rc ?: find_sets(&sets, &a, o->together);
		if (!rc)
			show_findings(out, &a, o, &sets);
		if (!rc && !try)
			command_say_part(&command_advise, &r, "", out);
		free(sets.items);
		advise_close(&a);
		timeline_close(&t);
	}
	recording_close(&r);
	return rc;
}

int run_advise(const struct advise_options *o, struct emit *out)
{
	if (o->command)
		return say_usage("-- COMMAND is for gpumemtrace advise alone: name a recording");
	return advise_recording(o, o->file, NULL, NULL, out);
}

int check_advise(struct advise_options *o)
{
	struct together set;
	bool each = o->tries && !o->tries[0][0]; /* --try without a change of its own */

	if (!o->file && !o->command)
		return say_usage("advise takes either a recording or -- COMMAND; see gpumemtrace "
				 "advise --help");
	if (o->file && !o->command && (o->tries || o->card))
		return say_usage(
			"--try and --card are for -- COMMAND: a recording alone is not run");
	if (o->file && o->command && !each)
		return say_usage(
			"to run COMMAND with each change for a recording, give --try alone: "
			"gpumemtrace advise FILE --try -- COMMAND");
	if (each && o->tries[1])
		return say_usage("--try stands for all changes, or names one: choose");
	if (o->command && o->patterns)
		return say_usage("--patterns is for a recording");
	for (char **t = o->together; t && *t; t++)
		if (!together_parse(&set, *t))
			return say_usage("--together %s: give numbers of findings, such as 1+3 or "
					 "1+batch=1/2",
					 *t);
	for (char **t = o->tries; !each && t && *t; t++)
		if (!strchr(*t, '='))
			return say_usage("--try %s: give a name and its value, such as batch=4 or "
					 "env:NAME=VALUE",
					 *t);
	return 0;
}

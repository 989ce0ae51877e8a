/* SPDX-License-Identifier: Apache-2.0 */
/*
 * top: the memory that a running process holds now, refreshed repeatedly. Each frame reads on in
 * the recording; a frame that took long is followed by a longer wait.
 */
#include <poll.h>
#include <signal.h>
#include <termios.h>
#include <unistd.h>

#include "../answers/chart.h"
#include "../answers/holders.h"
#include "../answers/parts.h"
#include "../ask/command.h"
#include "../base/arithmetic.h"
#include "../base/machine.h"
#include "../base/now.h"
#include "../base/sorted.h"
#include "../moments/following.h"
#include "../moments/snapshot.h"
#include "../recording/running.h"
#include "../recording/owner_words.h"

/*
 * The terminal while the command uses it: the alternate screen, keys without return. It is restored
 * when the command ends, also after a signal.
 */

static struct termios before;
static volatile sig_atomic_t stopped;

static void note_stop(int number)
{
	stopped = number;
}

static void catch_signals(void (*handler)(int))
{
	static const int numbers[] = { SIGINT, SIGTERM, SIGHUP };
	struct sigaction action = { .sa_handler = handler };

	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		sigaction(numbers[i], &action, NULL);
}

/* False: stdin or stdout is no terminal. */
static bool screen_open(void)
{
	struct termios raw;

	if (!machine_moves(stdout) || tcgetattr(STDIN_FILENO, &before))
		return false;
	raw = before;
	raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
	raw.c_cc[VMIN] = 0;
	raw.c_cc[VTIME] = 0;
	catch_signals(note_stop);
	tcsetattr(STDIN_FILENO, TCSANOW, &raw);
	fputs("\033[?1049h\033[?25l", stdout);
	fflush(stdout);
	return true;
}

static void screen_close(void)
{
	fputs("\033[?25h\033[?1049l", stdout);
	fflush(stdout);
	tcsetattr(STDIN_FILENO, TCSANOW, &before);
	catch_signals(SIG_DFL);
}

/* Draws text on the whole screen; lines that do not fit are cut off at the bottom. */
static void screen_show(const char *text, size_t len)
{
	unsigned columns, rows, row = 0;
	const char *end = text + len;

	chart_screen(&columns, &rows);
	fputs("\033[H", stdout);
	while (text < end && ++row < rows) {
		const char *line = memchr(text, '\n', (size_t)(end - text));

		line = line ? line : end;
		fwrite(text, 1, (size_t)(line - text), stdout);
		fputs("\033[K\r\n", stdout);
		text = line + 1;
	}
	fputs("\033[J", stdout);
	fflush(stdout);
}

/* Waits for a key; 0 = none came in that time, 'q' also for an end by a signal or of the input. */
static int screen_key(unsigned milliseconds)
{
	struct pollfd input = { STDIN_FILENO, POLLIN, 0 };
	char key;

	if (stopped)
		return 'q';
	if (poll(&input, 1, (int)milliseconds) <= 0)
		return stopped ? 'q' : 0;
	return read(STDIN_FILENO, &key, 1) == 1 ? key : 'q';
}

enum { BAR = 36, WHO = 50, CURVE = 32, PAGE = 10 };

/* Contents of one frame. */
struct top_view {
	struct following f;
	struct snapshot shot;
	struct holders holders; /* by line, for text also by class */

	/* set by keys */
	bool by_blocks, all;
	size_t from; /* the first line shown */
};

COMPARE(more_blocks, struct holder, ORDER(y->blocks, x->blocks) ?: ORDER(y->bytes, x->bytes))

static void open_view(const struct emit *out, struct top_view *v)
{
	struct timeline *t = &v->f.timeline;

	v->shot = (struct snapshot){ .model = &t->model,
				     .moment = { .device = t->device, .framework = t->framework } };
	model_now(&t->model, &v->shot.moment);
	snapshot_sort(&v->shot, t);
	v->holders = holders_of_blocks(&v->shot.moment, &t->owners, !emit_json(out));
	if (v->by_blocks && v->holders.count)
		qsort(v->holders.items, v->holders.count, sizeof(*v->holders.items), more_blocks);
	if (v->from >= v->holders.count)
		v->from = 0;
}

static enum phase phase_now(const struct top_view *v)
{
	const struct spans *s = &v->f.timeline.model.spans;

	return s->count ? s->items[s->count - 1].phase : PHASE_SETUP;
}

/* The current step, or the last one. */
static size_t step_now(const struct top_view *v)
{
	return steps_number(&v->f.timeline.steps);
}

static bool top_line_row(void *ctx, size_t i, struct row_line *row)
{
	const struct holders *all = ctx;
	const struct holder *h = &all->items[i];

	*row = (struct row_line){ .owner = h->owner, .bytes = h->bytes, .blocks = h->blocks };
	return true;
}

static struct row_top top_row(struct top_view *v)
{
	const struct moment *mo = &v->shot.moment;
	const struct model *m = &v->f.timeline.model;

	return (struct row_top){ .pid = v->f.recording.info->pid,
				 .ended = m->ended,
				 .device = mo->device,
				 .time_ns = mo->time_ns,
				 .events = m->events,
				 .bytes = mo->bytes,
				 .peak_bytes = model_curve(&m->devices[mo->device])->peak.bytes,
				 .reserved_bytes = mo->reserved,
				 .total_bytes = mo->total_bytes,
				 .step = step_now(v),
				 .phase = phases[phase_now(v)].name,
				 .categories = v->shot.bytes,
				 .lines = { v->holders.count, top_line_row, &v->holders },
				 .run = { RUN_IDENTITY, run_fact_row, &v->f.recording.defs } };
}

static const char *const ends[] = {
	[STATE_WHOLE] = " (ended)",
	[STATE_DAMAGED] = " (the file is damaged)",
	[STATE_RUNNING] = "",
	[STATE_NO_END] = " (killed or crashed)",
	[STATE_A_PART] = " (a part of its run)",
	[STATE_SEARCH] = " (ended by gpumemtrace)",
};

/* A PyTorch snapshot has neither process id nor command. */
static void print_top_title(struct emit *out, const struct top_view *v)
{
	uint32_t pid = v->f.recording.info->pid;
	char command[1024], who[1024];

	if (!pid) {
		emit_title(out, "%s", v->f.recording.path);
		return;
	}
	command_words(&v->f.recording.defs, command, sizeof(command));
	words_within(command, who, sizeof(who), 48);
	emit_title(out, "Process %u%s  %s", pid, ends[recording_state(&v->f.recording)], who);
}

/* Prints the peaks of the latest steps as a curve, and the growth of the last complete step. */
static void print_steps(struct emit *out, const struct top_view *v)
{
	static const char *const heights[] = { "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█" };
	const struct step *steps = v->f.timeline.steps.items;
	size_t n = step_now(v), from = n > CURVE ? n - CURVE + 1 : 1, whole = n;
	char curve[CURVE * 4] = "", left[HUMAN_MAX];
	uint64_t most = 0, least = UINT64_MAX;

	while (whole && !steps[whole].ended)
		whole--;
	for (size_t i = from; i <= n; i++) {
		most = arithmetic_most(most, steps[i].extent.peak);
		least = arithmetic_least(least, steps[i].extent.peak);
	}
	for (size_t i = from; i <= n && chart_utf8(); i++)
		strcat(curve, heights[7 * (steps[i].extent.peak - least) / (most - least + 1)]);
	if (whole > 1)
		emit_line(out, "Peaks since step %zu %s %s to %s, step %zu left %s%s", from, curve,
			  B(least), B(most), whole, steps[whole].extent.growth < 0 ? "-" : "+",
			  human_bytes(left, (uint64_t)llabs(steps[whole].extent.growth)));
}

static void print_top_head(struct emit *out, const struct top_view *v)
{
	const struct moment *mo = &v->shot.moment;
	const struct model *m = &v->f.timeline.model;
	bool running = recording_state(&v->f.recording) == STATE_RUNNING;
	const struct peak *peak = &model_curve(&m->devices[mo->device])->peak;
	char a[HUMAN_MAX], b[HUMAN_MAX], at[HUMAN_MAX], of[HUMAN_MAX + 8] = "", step[40] = "";

	print_top_title(out, v);
	if (mo->total_bytes)
		snprintf(of, sizeof(of), " of %s", human_bytes(a, mo->total_bytes));
	human_bytes(b, mo->bytes);
	if (moments_state_only(m)) {
		emit_line(out, "Device %d: %s%s, a state at one moment", mo->device, b, of);
		emit_line(out, "%s", "");
		return;
	}
	emit_line(out, "Device %d: %s%s %s, peak %s at %s", mo->device, b, of,
		  running ? "now" : "at the end", human_bytes(a, peak->bytes),
		  human_seconds(at, peak->event.time_ns - m->first_ns));
	if (step_now(v))
		snprintf(step, sizeof(step), "Step %zu, ", step_now(v));
	emit_line(out, "%s%s, after %s and %s events", step, phases[phase_now(v)].text,
		  human_seconds(a, m->last_ns - m->first_ns), human_count(b, m->events));
	print_steps(out, v);
	emit_line(out, "%s", "");
}

static void bar(struct emit *out, unsigned category, uint64_t bytes, uint64_t all)
{
	unsigned n = all ? (unsigned)(bytes * (unsigned __int128)BAR / all) : 0;
	const char *piece = emit_colour(out) && chart_utf8() ? "█" : "#";

	chart_colour(out, category, false);
	for (unsigned i = 0; i < n || (!i && bytes); i++)
		emit_raw(out, "%s", piece);
	chart_colour_end(out);
}

static void classes(struct emit *out, const struct top_view *v)
{
	const struct snapshot *s = &v->shot;

	for (unsigned c = 0; c < CATEGORIES; c++) {
		if (!s->bytes[c])
			continue;
		emit_raw(out, "  %-21s %10s %5s  ", categories[c].words, B(s->bytes[c]),
			 PERCENT(s->bytes[c], s->moment.bytes));
		bar(out, c, s->bytes[c], s->moment.bytes);
		emit_raw(out, "\n");
	}
	if (s->moment.reserved > s->moment.bytes)
		emit_line(out, "  %-21s %10s", "cached, not in use",
			  B(s->moment.reserved - s->moment.bytes));
	emit_line(out, "%s", "");
}

static void print_frame(struct emit *out, const struct top_options *o, struct top_view *v)
{
	static const struct text_column columns[] = {
		TEXT_COLUMN("class", class_line_class, 2, -21),
		TEXT_COLUMN("allocated at", class_line_owner, 2, -20, .room = WHO),
		TEXT_COLUMN("bytes", class_line_bytes, 1, 10),
		TEXT_COLUMN("blocks", class_line_blocks, 1, 8),
	};
	struct rows_class_line lines;
	struct holders rest;
	struct row_top row;

	open_view(out, v);
	row = top_row(v);
	emit_document(out, top, &row);
	if (!emit_json(out)) {
		print_top_head(out, v);
		classes(out, v);
		rest = (struct holders){ .items = v->holders.items + v->from,
					 .count = v->holders.count - v->from };
		lines = holders_rows(&rest);
		emit_columns(out, class_line, &lines, columns,
			     o->top > 0 && !v->all ? (size_t)o->top : 0);
	}
	free(v->holders.items);
	moment_free(&v->shot.moment);
}

/* Draws one frame on the screen. */
static void show_frame(struct emit *out, const struct top_options *o, struct top_view *v,
		       bool ended)
{
	char *text = NULL;
	size_t len = 0;
	FILE *f = need_stream(&text, &len);
	struct emit *page = emit_like(out, f);

	print_frame(page, o, v);
	emit_line(page, "%s", "");
	emit_line(page, "%sq quits, s sorts by %s, a shows %s, j and k move.",
		  ended ? "The program has ended. " : "", v->by_blocks ? "bytes" : "blocks",
		  v->all ? "fewer lines" : "all lines");
	emit_close(page);
	fclose(f);
	screen_show(text, len);
	free(text);
}

static void take_key(struct top_view *v, int key)
{
	if (key == 's')
		v->by_blocks = !v->by_blocks;
	else if (key == 'a')
		v->all = !v->all;
	else if (key == 'j')
		v->from += PAGE;
	else if (key == 'k')
		v->from -= arithmetic_least(v->from, PAGE);
}

/* Milliseconds to wait, so that reading takes at most a fifth of the time. The first look does not
 * count, because it reads everything. */
static unsigned time_to_rest(const struct top_options *o, uint64_t took)
{
	uint64_t every = (uint64_t)o->every * 1000;

	return (unsigned)(4 * took > every ? 4 * took : every);
}

static int follow_process(struct emit *out, const struct top_options *o, struct top_view *v,
			  long pid)
{
	bool ended = false;
	int rc = 0, key = 0;

	while (!rc && key != 'q') {
		uint64_t start = now_ms();
		bool gone = pid && !running_lives(pid), first = !v->f.whole_reads;

		if (!ended) {
			rc = following_look(&v->f);
			ended = gone || (!rc && v->f.timeline.model.ended);
		}
		if (rc)
			break;
		show_frame(out, o, v, ended);
		key = screen_key(time_to_rest(o, first ? 0 : now_ms() - start));
		take_key(v, key);
	}
	return rc;
}

/* Prints one frame, or the reason why the file cannot be followed. */
static int look_once(struct emit *out, const struct top_options *o, const char *path)
{
	struct top_view v = { .f = { .path = path, .device = o->device, .once = true } };
	int rc = following_look(&v.f);

	if (!rc)
		print_frame(out, o, &v);
	following_close(&v.f);
	return rc;
}

int run_top(const struct top_options *o, struct emit *out)
{
	struct top_view v = { .f = { .device = o->device } };
	char path[PATH_MAX];
	long pid;
	int rc = running_find(o->file, path, &pid);

	if (rc)
		return rc;
	if (emit_json(out) || !screen_open())
		return look_once(out, o, path);
	say_progress_off();
	v.f.path = path;
	rc = follow_process(out, o, &v, pid);
	following_close(&v.f);
	screen_close();
	return rc ? look_once(out, o, path) : 0;
}

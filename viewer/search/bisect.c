/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measures both ends, then git's bisect runs this command again on each commit that it selects
 * (bisect_step). A commit is bad if its peak is above the limit or it runs out of memory. A commit
 * whose program fails for another reason is skipped. If only the older end is bad, git looks for
 * the first good commit instead. At the end the commit found and its parent are compared as `diff`
 * does. An interrupt ends the current run; the worktree is removed all the same.
 */
#include "bisect.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../base/human.h"
#include "../base/need.h"
#include "../base/say.h"
#include "../documents/columns.h"
#include "git.h"

#define STATE	     "GPUMEMTRACE_BISECT"
#define SKIP	     125
#define INTERRUPTED  130
#define MOST_SKIPPED 50

static volatile sig_atomic_t interrupted;

static void note_interrupt(int signal)
{
	(void)signal;
	interrupted = 1;
	bisect_interrupt();
}

bool bisect_is_step(void)
{
	return getenv(STATE);
}

/* ---- one commit, for git ---- */

static bool is_bad(const struct bisect *b, const struct trial *t)
{
	return t->verdict == ENDING_REFUSED || t->peak > b->limit_bytes;
}

/* Reads the state that the first process wrote: numbers, the ends, the folders, one per line. */
static bool read_state(struct bisect *b)
{
	FILE *f = fopen(getenv(STATE), "r");
	char numbers[64];
	struct {
		char *into;
		size_t room;
	} lines[] = {
		{ numbers, sizeof(numbers) },	  { b->good_id, sizeof(b->good_id) },
		{ b->bad_id, sizeof(b->bad_id) }, { b->top, sizeof(b->top) },
		{ b->prefix, sizeof(b->prefix) }, { b->cwd, sizeof(b->cwd) },
		{ b->tree, sizeof(b->tree) },	  { b->plan.folder, sizeof(b->plan.folder) }
	};
	bool whole = f;
	int lowered = 0;

	for (size_t i = 0; whole && i < sizeof(lines) / sizeof(lines[0]); i++) {
		whole = fgets(lines[i].into, (int)lines[i].room, f);
		if (whole)
			lines[i].into[strcspn(lines[i].into, "\n")] = 0;
	}
	if (f)
		fclose(f);
	whole = whole && sscanf(numbers, "%" SCNu64 " %" SCNx64 " %d", &b->limit_bytes,
				&b->fingerprint, &lowered) == 3;
	b->lowered = lowered;
	return whole;
}

int bisect_step(struct bisect *b)
{
	struct trial t;
	char *head;
	FILE *log;
	char path[2 * PATH_MAX];

	/* An exit code above 127 makes git stop the bisect. */
	if (!read_state(b))
		return 200;
	unsetenv(STATE);
	head = GIT_ASK(b->tree, NULL, "rev-parse", "HEAD");
	if (!head || bisect_measure(b, &t, head))
		return 200;
	snprintf(path, sizeof(path), "%s/measured", b->plan.folder);
	log = fopen(path, "a");
	if (log) {
		fprintf(log, "%s\n", head);
		fclose(log);
	}
	free(head);
	return t.verdict == ENDING_FAILED ? SKIP : is_bad(b, &t) != b->lowered;
}

static int write_state(const struct bisect *b)
{
	char path[2 * PATH_MAX];
	FILE *f;

	snprintf(path, sizeof(path), "%s/state", b->plan.folder);
	f = fopen(path, "w");
	if (!f)
		return say_error(EXIT_UNREADABLE, "%s cannot be written", path);
	fprintf(f, "%" PRIu64 " %" PRIx64 " %d\n%s\n%s\n%s\n%s\n%s\n%s\n%s\n", b->limit_bytes,
		b->fingerprint, b->lowered, b->good_id, b->bad_id, b->top, b->prefix, b->cwd,
		b->tree, b->plan.folder);
	fclose(f);
	setenv(STATE, path, 1);
	snprintf(path, sizeof(path), "%s/measured", b->plan.folder);
	unlink(path); /* left by an earlier search in the same folder */
	return 0;
}

/* ---- the ends ---- */

static int measure_end(struct bisect *b, struct trial *t, const char *name, const char *id)
{
	char words[2048];
	int rc = bisect_measure(b, t, id);

	if (interrupted)
		return INTERRUPTED;
	if (rc)
		return say_error(EXIT_UNREADABLE, "%s could not be measured", name);
	if (t->verdict != ENDING_FAILED)
		return 0;
	return say_error(EXIT_UNREADABLE, "%s: %s, %s", name, trial_failed(t),
			 trial_failure(t, words, sizeof(words)));
}

static uint64_t limit_above(const struct bisect *b, const struct trial *t)
{
	return b->max_peak ? amount_bytes(&b->limit, 0)
			   : t->peak + amount_bytes(&b->limit, t->peak);
}

static const char *out_of_memory(const struct trial *t)
{
	return t->verdict == ENDING_REFUSED ? " (out of memory)" : "";
}

static int nothing_to_find(const struct bisect *b, const struct trial *good,
			   const struct trial *bad)
{
	char limit[HUMAN_MAX], x[HUMAN_MAX];
	bool both_bad = is_bad(b, good);
	const struct trial *t = both_bad ? good : bad;

	human_apart(x, t->peak, b->limit_bytes);
	human_apart(limit, b->limit_bytes, t->peak);
	if (both_bad)
		return say_error(EXIT_CHECK,
				 "%s is bad, but %s is not good either: its peak is %s%s, and the "
				 "limit is %s",
				 b->bad, b->good, x, out_of_memory(t), limit);
	return say_error(
		EXIT_CHECK,
		"%s is not bad: its peak is %s, and up to %s are good; there is nothing to find",
		b->bad, x, limit);
}

/* The limit is above the older end, or above the newer end if that is the lower one. */
static int find_limit(struct bisect *b, const struct trial *good, const struct trial *bad)
{
	uint64_t above_good = limit_above(b, good);

	b->limit_bytes = above_good;
	if (!is_bad(b, good) && is_bad(b, bad))
		return 0;
	b->limit_bytes = limit_above(b, bad);
	b->lowered = is_bad(b, good) && !is_bad(b, bad);
	if (b->lowered)
		return 0;
	b->limit_bytes = above_good;
	return nothing_to_find(b, good, bad);
}

/* ---- git's bisect ---- */

/* Quotes a word for the shell, because git passes the command to one. */
static char *quoted(const char *word)
{
	char *text = need_new(4 * strlen(word) + 3), *at = text;

	*at++ = '\'';
	for (; *word; word++) {
		if (*word == '\'') {
			memcpy(at, "'\\''", 4);
			at += 4;
		} else {
			*at++ = *word;
		}
	}
	*at = '\'';
	return text;
}

static char *self_line(const struct bisect *b)
{
	char *line = NULL, *word, path[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);
	size_t len = 0;
	FILE *f = need_stream(&line, &len);

	path[n < 0 ? 0 : n] = 0;
	word = quoted(path);
	fprintf(f, "%s bisect", word);
	free(word);
	for (char **s = b->self; *s; s++) {
		word = quoted(*s);
		fprintf(f, " %s", word);
		free(word);
	}
	fclose(f);
	return line;
}

static int perform(struct bisect *b)
{
	char *line, *text = NULL, *why = NULL;
	const char *argv[] = { "git", "bisect", "run", "sh", "-c", NULL, NULL };
	int rc;

	text = GIT_ASK(b->tree, &why, "bisect", "start", b->bad_id, b->good_id);
	if (!text) {
		rc = say_error(EXIT_UNREADABLE, "git bisect: %s", why);
		free(why);
		return rc;
	}
	free(text);
	line = self_line(b);
	argv[5] = line;
	rc = git_run_program(b->tree, argv, &text);
	free(line);
	if (interrupted)
		rc = INTERRUPTED;
	else if (rc && rc != 2)
		rc = say_error(EXIT_UNREADABLE, "git bisect ended with exit code %d: %s", rc,
			       text ? text : "");
	else
		rc = 0;
	free(text);
	return rc;
}

/* ---- the answer ---- */

struct answer {
	struct bisect *bisect;
	char commit[48], parent[48], subject[300], author[200];
	char *skipped[MOST_SKIPPED];
	size_t skipped_count;
	char **measured;
	size_t measured_count, room;
	struct trial old, new, row;
	char row_subject[300];
};

/* Commits that git could not distinguish from the one that it names, because they were skipped. */
static void find_skipped(struct answer *a)
{
	char *text = GIT_ASK(a->bisect->tree, NULL, "rev-list", "refs/bisect/bad", "--not",
			     "--glob=refs/bisect/good-*"),
	     *save = NULL;

	for (char *line = text ? strtok_r(text, "\n", &save) : NULL;
	     line && a->skipped_count < MOST_SKIPPED; line = strtok_r(NULL, "\n", &save))
		if (strcmp(line, a->commit))
			a->skipped[a->skipped_count++] = need_copy(line, strlen(line));
	free(text);
}

static void add_measured(struct answer *a, const char *id)
{
	for (size_t i = 0; i < a->measured_count; i++)
		if (!strcmp(a->measured[i], id))
			return;
	*need_item(a->measured, a->measured_count, a->room) = need_copy(id, strlen(id));
}

static void find_measured(struct answer *a)
{
	char path[2 * PATH_MAX], line[64];
	FILE *f;

	add_measured(a, a->bisect->good_id);
	add_measured(a, a->bisect->bad_id);
	snprintf(path, sizeof(path), "%s/measured", a->bisect->plan.folder);
	f = fopen(path, "r");
	while (f && fgets(line, sizeof(line), f)) {
		line[strcspn(line, "\n")] = 0;
		add_measured(a, line);
	}
	if (f)
		fclose(f);
}

static int find_answer(struct answer *a)
{
	struct bisect *b = a->bisect;
	char name[64];
	int rc;

	GIT_INTO(b->tree, a->commit, "rev-parse", "refs/bisect/bad");
	if (!a->commit[0])
		return say_error(EXIT_UNREADABLE, "git bisect named no commit");
	find_skipped(a);
	find_measured(a);
	snprintf(name, sizeof(name), "%s^1", a->commit);
	if (!GIT_INTO(b->top, a->parent, "rev-parse", "--verify", "--quiet", name))
		memcpy(a->parent, b->good_id, sizeof(a->parent));
	GIT_INTO(b->top, a->subject, "show", "-s", "--format=%s", a->commit);
	GIT_INTO(b->top, a->author, "show", "-s", "--format=%an", a->commit);
	unsetenv(STATE);
	rc = bisect_measure(b, &a->new, a->commit);
	if (!rc)
		rc = bisect_measure(b, &a->old, a->parent);
	if (!rc && a->old.verdict == ENDING_FAILED) {
		trial_free(&a->old);
		rc = bisect_measure(b, &a->old, b->good_id);
	}
	return interrupted ? INTERRUPTED : rc;
}

static const char *skipped_word(const void *ctx, size_t i)
{
	return ((const struct answer *)ctx)->skipped[i];
}

static bool measured_row(void *ctx, size_t i, struct row_bisect_commit *row)
{
	struct answer *a = ctx;

	trial_free(&a->row);
	if (bisect_measure(a->bisect, &a->row, a->measured[i]))
		return false;
	GIT_INTO(a->bisect->top, a->row_subject, "show", "-s", "--format=%s", a->measured[i]);
	*row = (struct row_bisect_commit){
		.commit = a->measured[i],
		.subject = a->row_subject,
		.verdict = a->row.verdict == ENDING_FAILED ? "skipped"
			   : is_bad(a->bisect, &a->row)	   ? "bad"
							   : "good",
		.peak_bytes = a->row.verdict == ENDING_FAILED ? 0 : a->row.peak,
		.brief = a->row.name,
	};
	return true;
}

/* Appends the text of `diff` between the two. */
static void compare(struct answer *a, struct emit *out)
{
	char old[PATH_MAX], new[PATH_MAX], *text = NULL, *save = NULL;
	const char *argv[] = { "/proc/self/exe", "diff", old, new, NULL };

	trial_path(&a->old, &a->bisect->plan, ".gmt", old);
	trial_path(&a->new, &a->bisect->plan, ".gmt", new);
	git_run_program(NULL, argv, &text);
	emit_line(out, "%s", "");
	for (char *line = text; line; line = save) {
		save = strchr(line, '\n');
		if (save)
			*save++ = 0;
		emit_line(out, "%s", line);
	}
	free(text);
}

static void print(struct answer *a, struct emit *out)
{
	static const struct text_column columns[] = {
		TEXT_COLUMN("commit", bisect_commit_brief, 2, -12),
		TEXT_COLUMN("verdict", bisect_commit_verdict, 2, -7),
		TEXT_COLUMN("peak", bisect_commit_peak_bytes, 1, 10),
		TEXT_COLUMN("", bisect_commit_subject, 2, -20),
	};
	struct row_bisect row = { .commit = a->commit,
				  .parent = a->parent,
				  .peak_old = a->old.peak,
				  .peak_new = a->new.peak,
				  .subject = a->subject,
				  .author = a->author,
				  .limit_bytes = a->bisect->limit_bytes,
				  .skipped = { a->skipped_count, skipped_word, a },
				  .measured = { a->measured_count, measured_row, a } };
	char x[HUMAN_MAX], y[HUMAN_MAX];

	emit_document(out, bisect, &row);
	if (emit_json(out))
		return;
	human_apart(x, a->old.peak, a->new.peak);
	human_apart(y, a->new.peak, a->old.peak);
	emit_title(out, "%.12s %s the peak from %s%s to %s%s", a->commit,
		   a->bisect->lowered ? "lowered" : "raised", x, out_of_memory(&a->old), y,
		   out_of_memory(&a->new));
	emit_line(out, "%s (%s)", a->subject, a->author);
	for (size_t i = 0; i < a->skipped_count; i++)
		emit_line(out, "It may also be %.12s, which could not be measured", a->skipped[i]);
	emit_line(out, "%s", "");
	emit_columns(out, bisect_commit, &row.measured, columns, 0);
	compare(a, out);
}

static void free_answer(struct answer *a)
{
	trial_free(&a->old);
	trial_free(&a->new);
	trial_free(&a->row);
	for (size_t i = 0; i < a->skipped_count; i++)
		free(a->skipped[i]);
	for (size_t i = 0; i < a->measured_count; i++)
		free(a->measured[i]);
	free(a->measured);
}

static int search(struct bisect *b, struct emit *out)
{
	struct trial good = { 0 }, bad = { 0 };
	struct answer a = { .bisect = b };
	int rc = measure_end(b, &bad, b->bad, b->bad_id);

	if (!rc)
		rc = measure_end(b, &good, b->good, b->good_id);
	if (!rc)
		rc = find_limit(b, &good, &bad);
	if (!rc)
		rc = write_state(b);
	if (!rc)
		rc = perform(b);
	if (!rc)
		rc = find_answer(&a);
	if (!rc)
		print(&a, out);
	free_answer(&a);
	trial_free(&good);
	trial_free(&bad);
	return rc;
}

int bisect_perform(struct bisect *b, struct emit *out)
{
	static const int signals[] = { SIGINT, SIGTERM, SIGHUP };
	struct sigaction note = { .sa_handler = note_interrupt };
	int rc;

	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		sigaction(signals[i], &note, NULL);
	rc = bisect_open(b);
	if (!rc)
		rc = search(b, out);
	bisect_close(b);
	return rc;
}

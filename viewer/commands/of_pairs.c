/* SPDX-License-Identifier: Apache-2.0 */
/* A comparison of two runs. Ranks are matched by number, each pair is compared like two recordings,
 * and the pair whose memory grew most is shown in full. */
#include "../base/bytes.h"
#include "../ranks/ranks_print.h"
#include "of_ranks.h"

#define FINDINGS 3 /* findings that are looked up in all ranks */

/* Findings of one pair's comparison, as hashes of the names in them. */
struct found {
	uint64_t *items;
	size_t count, room;
};

struct pairs {
	const struct command *command;
	void *options, *plain; /* as they were given; for one of many */
	bool markdown;
	struct emit *out;
	const struct ranks_run *old, *new;
	const char **partner; /* of each recording of the new run, NULL: there is none */
	struct found *found;
	struct ranks_table table;
	size_t worst; /* row of the table */
	bool *marked; /* ranks, for who needs such a list */
};

/* The recording of the same rank; without ranks, the one with the same file name. */
static const char *partner_of(const struct ranks_run *old, const struct rank_file *f)
{
	FOR_EACH (const struct rank_file, g, old->items, old->count)
		if (f->rank >= 0
			    ? g->rank == f->rank
			    : g->rank < 0 && !strcmp(owners_base(g->path), owners_base(f->path)))
			return g->path;
	return NULL;
}

static void set_files(const struct command *c, void *options, const char *old, const char *new)
{
	*options_text(options, c->file) = old;
	*options_text(options, c->other) = new;
}

static int compare_pair(void *ctx, size_t i, FILE *f)
{
	struct pairs *p = ctx;
	struct emit *out;
	int rc;

	if (!p->partner[i])
		return say_unreadable("the old run has no recording of this rank");
	out = emit_open(f, true);
	set_files(p->command, p->plain, p->partner[i], p->new->items[i].path);
	rc = command_perform(p->command, p->plain, out);
	emit_close(out);
	return rc;
}

static void keep_findings(struct found *f, struct json findings)
{
	static const char *const names[] = { "kind", "class", "function", "file", "line" };

	for (struct json v = json_first(findings, NULL); v.s; v = json_next(findings, v, NULL)) {
		uint64_t hash = BYTES_HASH;

		for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
			struct json text = json_member(v, names[i]);

			hash = bytes_hash(hash, text.s, (size_t)(text.end - text.s));
			hash = bytes_hash(hash, "\xff", 1);
		}
		*need_item(f->items, f->count, f->room) = hash;
	}
}

static void note_pair(void *ctx, size_t i, const struct ranks_result *result)
{
	struct pairs *p = ctx;
	struct json documents[2];

	ranks_table_add(&p->table, i, result);
	ranks_documents(result, documents);
	keep_findings(&p->found[i], json_member(documents[0], "findings"));
	if (emit_json(p->out))
		ranks_print_row(p->out, &p->table.rows[i], result);
	if (p->table.rows[i].fine && result->rc) {
		free(p->table.rows[i].error);
		p->table.rows[i].error = need_text(result->error);
	}
}

/* Failed checks first, then the greatest growth. */
static bool is_worse(const struct ranks_table *t, size_t a, size_t b)
{
	const struct ranks_row *x = &t->rows[a], *y = &t->rows[b];

	if (x->fine != y->fine)
		return x->fine;
	if (!x->fine)
		return false;
	if (x->rc != y->rc)
		return x->rc > y->rc;
	return x->values[t->main].n > y->values[t->main].n;
}

static size_t find_worst(const struct ranks_table *t)
{
	size_t worst = 0;

	for (size_t i = 1; i < t->run->count; i++)
		if (is_worse(t, i, worst))
			worst = i;
	return worst;
}

static bool has_found(const struct found *f, uint64_t finding)
{
	return ANY_OF(x, f->items, f->count, *x == finding);
}

static size_t mark_sharing(const struct pairs *p, uint64_t finding, bool *marked)
{
	size_t n = 0;

	for (size_t i = 0; i < p->new->count; i++)
		n += marked[i] = p->table.rows[i].fine && has_found(&p->found[i], finding);
	return n;
}

static size_t compared(const struct pairs *p)
{
	size_t n = 0;

	for (size_t i = 0; i < p->new->count; i++)
		n += p->table.rows[i].fine;
	return n;
}

/* The first findings of the worst pair, and the ranks that share them. */
static bool shared_row(void *ctx, size_t i, struct row_ranks_shared *row)
{
	struct pairs *p = ctx;

	*row = (struct row_ranks_shared){
		.finding = i + 1,
		.ranks = mark_sharing(p, p->found[p->worst].items[i], p->marked),
	};
	return true;
}

static struct rows_ranks_shared shared_findings(struct pairs *p)
{
	size_t count = p->found[p->worst].count;

	return (struct rows_ranks_shared){ count < FINDINGS ? count : FINDINGS, shared_row, p };
}

static void text_shared(struct pairs *p)
{
	struct rows_ranks_shared rows = shared_findings(p);
	struct row_ranks_shared row;
	size_t all = compared(p);
	char ranks[80];

	for (size_t i = 0; i < rows.count && all > 1; i++) {
		shared_row(p, i, &row);
		ranks_words(p->new, p->marked, ranks, sizeof(ranks));
		if (row.ranks == all)
			emit_sentence(p->out, "  ", "Finding %zu: all %zu ranks have it.", i + 1,
				      all);
		else
			emit_sentence(p->out, "  ", "Finding %zu: %zu of %zu ranks have it: %s.",
				      i + 1, (size_t)row.ranks, all, ranks);
	}
}

static void emit_pairs(struct pairs *p, const struct ranks_strays *s)
{
	struct ranks_answer document = { .table = &p->table, .strays = s };
	const struct ranks_row *worst = &p->table.rows[p->worst];
	struct row_ranks row = ranks_answer(&document);

	row.has_worst = row.has_shared = worst->fine;
	row.worst = (struct row_ranks_worst){ .has_rank = worst->file->rank >= 0,
					      .rank = worst->file->rank,
					      .recording = worst->file->path };
	row.shared = shared_findings(p);
	emit_rest(p->out, ranks, &row, "totals");
	ranks_answer_free(&document);
}

/* The exit code is the worst pair's, whose own output says why. */
static int print_pairs(struct pairs *p, const struct ranks_strays *s)
{
	const struct rank_file *f = &p->new->items[p->worst];

	if (p->markdown)
		emit_line(p->out, "```");
	ranks_print_text(p->out, &p->table, s);
	emit_line(p->out, "%s", "");
	text_shared(p);
	if (p->markdown)
		emit_line(p->out, "```");
	if (compared(p) > 1)
		emit_title(p->out, "The most growth, or the least shrinking: %s",
			   f->name[0] ? f->name : owners_base(f->path));
	emit_line(p->out, "%s", "");
	set_files(p->command, p->options, p->partner[p->worst], f->path);
	return command_perform(p->command, p->options, p->out);
}

/* Other files are written for the worst pair only. */
static int write_besides(struct pairs *p)
{
	FILE *nowhere = fopen("/dev/null", "w");
	struct emit *out = nowhere ? emit_open(nowhere, true) : NULL;
	int rc;

	if (!out)
		return say_unreadable("/dev/null: %s", strerror(errno));
	set_files(p->command, p->options, p->partner[p->worst], p->new->items[p->worst].path);
	rc = command_perform(p->command, p->options, out);
	emit_close(out);
	fclose(nowhere);
	return rc;
}

static int print_worst(struct pairs *p)
{
	const struct ranks_row *row;
	struct ranks_strays strays;
	int rc;

	p->worst = find_worst(&p->table);
	row = &p->table.rows[p->worst];
	rc = row->rc;

	ranks_strays(&strays, &p->table);
	if (emit_json(p->out))
		emit_pairs(p, &strays);
	if (!row->fine)
		rc = say_error(rc, "no rank can be compared; the first: %s", row->error);
	else if (!emit_json(p->out))
		rc = print_pairs(p, &strays);
	else if (memcmp(p->options, p->plain, p->command->size))
		rc = write_besides(p);
	else if (row->rc)
		say_error(rc, "%s: %s", row->file->name, row->error);
	ranks_strays_free(&strays);
	return rc;
}

static int compare_runs(struct pairs *p)
{
	const struct ranks_work job = { p->new->count, compare_pair, note_pair, p };
	int rc;

	p->plain = need_copy(p->options, p->command->size);
	p->markdown = p->command->plain(p->plain);
	p->partner = need_new((p->new->count + 1) * sizeof(*p->partner));
	p->marked = need_new(p->new->count + 1);
	p->found = need_new((p->new->count + 1) * sizeof(*p->found));
	for (size_t i = 0; i < p->new->count; i++)
		p->partner[i] = partner_of(p->old, &p->new->items[i]);
	ranks_table_init(&p->table, p->new, p->command->name);
	p->table.pairs = true;
	emit_object(p->out, NULL);
	emit_array(p->out, "ranks");
	ranks_work(&job);
	emit_end(p->out);
	rc = print_worst(p);
	emit_end(p->out);
	for (size_t i = 0; i < p->new->count; i++)
		free(p->found[i].items);
	free(p->found);
	free(p->marked);
	free(p->partner);
	free(p->plain);
	ranks_table_free(&p->table);
	return rc;
}

static int one_pair(struct pairs *p, const char *rank, const char *old, const char *new)
{
	size_t a = 0, b = 0;
	int rc = rank_choose(p->old, rank, old, &a);

	if (!rc)
		rc = rank_choose(p->new, rank, new, &b);
	if (rc)
		return rc;
	set_files(p->command, p->options, p->old->items[a].path, p->new->items[b].path);
	return command_perform(p->command, p->options, p->out);
}

static void say_gone(const struct ranks_run *old, const struct ranks_run *new)
{
	bool *gone = need_new(old->count + 1);
	char words[200];
	size_t n = 0;

	for (size_t i = 0; i < old->count; i++)
		n += gone[i] = !partner_of(new, &old->items[i]);
	if (n)
		say_note("the new run has no recording of: %s",
			 ranks_words(old, gone, words, sizeof(words)));
	free(gone);
}

int of_pairs(const struct command *c, void *options, const struct options_common *common,
	     struct emit *out)
{
	char *old[] = { (char *)*options_text(options, c->file), NULL };
	char *new[] = { (char *)*options_text(options, c->other), NULL };
	struct ranks_run before = { 0 }, after = { 0 };
	struct pairs p = {
		.command = c, .options = options, .out = out, .old = &before, .new = &after
	};
	int rc;

	if (!common->rank && !ranks_is_run(old) && !ranks_is_run(new))
		return command_perform(c, options, out);
	if (!common->rank && ranks_is_run(old) != ranks_is_run(new))
		return say_usage("%s is a folder and %s is not: name two folders, two recordings, "
				 "or a rank with --rank N",
				 ranks_is_run(old) ? old[0] : new[0],
				 ranks_is_run(old) ? new[0] : old[0]);
	rc = ranks_find(&before, old, RANKS_LAST);
	if (!rc)
		rc = ranks_find(&after, new, RANKS_LAST);
	if (!rc && before.note[0])
		say_note("%s: %s", old[0], before.note);
	if (!rc && !common->rank)
		say_gone(&before, &after);
	if (!rc)
		rc = common->rank ? one_pair(&p, common->rank, old[0], new[0]) : compare_runs(&p);
	ranks_free(&before);
	ranks_free(&after);
	return rc;
}

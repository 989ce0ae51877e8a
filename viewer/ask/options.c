/* SPDX-License-Identifier: Apache-2.0 */
#include "options.h"

#include <unistd.h>

#include "../base/shell.h"
#include "../classes/classify.h"
#include "command.h"

/* State of parsing one command line. */
struct parse {
	const struct command *command;
	char **next;
	char *into;
	struct options_common *common;
	const struct operand_row *operand;
	size_t many; /* operands in a list so far */
};

static const struct option_row common_rows[] = {
	OPTION_ROW(struct options_common, json, "json", 0, SWITCH, NULL, "print JSON"),
	OPTION_ROW(struct options_common, help, "help", 'h', SWITCH, NULL, "print this text"),
	OPTION_ROW(struct options_common, no_pager, "no-pager", 0, SWITCH, NULL,
		   "print long text as it is"),
	{ 0 },
};

const struct option_row options_of_ranks[] = {
	OPTION_ROW(struct options_common, rank, "rank", 0, TEXT, "N",
		   "take the recording of rank N"),
	{ 0 },
};

static const struct option_row none[] = { { 0 } };

const char options_classes[] =
#define CATEGORY(name, words, colour, letter, term, level, part, traits) #name " "
#include "../classes/categories.def"
	;

const char *const command_groups[COMMAND_GROUPS] = {
#define GROUP(name, heading) heading,
#include "command_groups.def"
};

static const struct option_row *rank_rows(const struct command *c)
{
	return c->ranks ? options_of_ranks : none;
}

static size_t distance(const char *a, const char *b)
{
	size_t row[64], n = strlen(b), before, keep;

	if (n >= 64 || strlen(a) >= 64)
		return 64;
	for (size_t j = 0; j <= n; j++)
		row[j] = j;
	for (size_t i = 1; *a; i++, a++) {
		before = row[0];
		row[0] = i;
		for (size_t j = 1; j <= n; j++) {
			size_t best = before + (*a != b[j - 1]);

			keep = row[j];
			if (keep + 1 < best)
				best = keep + 1;
			if (row[j - 1] + 1 < best)
				best = row[j - 1] + 1;
			row[j] = best;
			before = keep;
		}
	}
	return row[n];
}

const char *options_guess(const char *word, const char *(*next)(const void *ctx, size_t i),
			  const void *ctx)
{
	const char *best = NULL, *candidate;
	size_t least = strlen(word) < 5 ? 2 : 3;

	for (size_t i = 0; (candidate = next(ctx, i)); i++) {
		size_t d = distance(word, candidate);

		if (d < least || (strlen(word) >= 3 && !strncmp(word, candidate, strlen(word)))) {
			best = candidate;
			least = d;
		}
	}
	return best;
}

static const char *option_name(const void *ctx, size_t i)
{
	const struct command *c = ctx;
	size_t n = 0;

	while (c->options && c->options[n].name)
		n++;
	return i < n ? c->options[i].name : common_rows[i - n].name;
}

static int unknown_option(const struct parse *p, const char *word)
{
	char path[SHELL_WORD];
	const char *guess = options_guess(word + strspn(word, "-"), option_name, p->command);

	if (!access(word, F_OK))
		return say_usage("unknown option %s; the file of that name is %s", word,
				 shell_word(word, path));
	if (guess)
		return say_usage("unknown option %s; did you mean --%s?", word, guess);
	return say_usage("unknown option %s; see gpumemtrace %s --help", word, p->command->name);
}

/* The row for the word at `name` (len bytes; a single letter if `letter`), and the struct it fills.
 */
static const struct option_row *find_option(const struct parse *p, const char *name, size_t len,
					    bool letter, char **into)
{
	const struct option_row *tables[] = { p->command->options, common_rows,
					      rank_rows(p->command) };

	for (size_t t = 0; t < 3; t++) {
		*into = t ? (char *)p->common : p->into;
		for (const struct option_row *r = tables[t]; r && r->name; r++)
			if (letter ? r->letter && r->letter == *name
				   : strlen(r->name) == len && !memcmp(r->name, name, len))
				return r;
	}
	return NULL;
}

static int out_of_range(const struct option_row *r)
{
	return say_usage("--%s takes %ld to %ld", r->name, r->least, r->most);
}

static int set_number_option(const struct option_row *r, const char *value, long *out)
{
	char *end;

	errno = 0;
	*out = strtol(value, &end, 0);
	if (errno || end == value || *end || *out < 0)
		return say_usage("--%s needs a number%s, not \"%s\"", r->name,
				 *out < 0 ? " from 0 up" : "", value);
	return r->most && (*out < r->least || *out > r->most) ? out_of_range(r) : 0;
}

static int set_figure(const struct option_row *r, const char *value, double *out)
{
	char *end;

	errno = 0;
	*out = strtod(value, &end);
	if (!errno && end != value && !*end && *out > 0 && *out < 1e18)
		return r->most && *out > r->most ? out_of_range(r) : 0;
	return say_usage("--%s needs a number above zero, not \"%s\"", r->name, value);
}

static int set_amount(const struct option_row *r, const char *value, struct option_amount *out)
{
	out->text = value;
	out->given = true;
	if (amount_parse(value, &out->amount) && out->amount.value >= r->least &&
	    (r->kind == OPTION_LIMIT || !out->amount.percent))
		return 0;
	return say_usage("--%s needs %s, not \"%s\"", r->name,
			 r->kind == OPTION_LIMIT ? "a share (2%) or a size (64MiB)"
						 : "a size such as 40GiB",
			 value);
}

static bool has_word(const char *words, const char *value)
{
	size_t len = strlen(value);

	for (const char *s = words; s && *s; s += strcspn(s, " "), s += *s == ' ')
		if (strcspn(s, " ") == len && !memcmp(s, value, len))
			return true;
	return false;
}

static int set_word(const struct option_row *r, const char *value, const char **out)
{
	*out = value;
	if (has_word(r->words, value))
		return 0;
	return say_usage("--%s \"%s\" is not one of: %s", r->name, value, r->words);
}

static int set_class(const struct option_row *r, const char *value, int *out)
{
	*out = category_by_name(value);
	if (*out >= 0 || has_word(r->words, value))
		return 0;
	return say_usage("--%s \"%s\" is not one of: %s%s%s", r->name, value, options_classes,
			 r->words ? " " : "", r->words ? r->words : "");
}

/* Appends to a list that ends with NULL. */
static void add_word(char ***list, const char *word)
{
	size_t n = need_count(*list);

	*list = need_resize(*list, (n + 2) * sizeof(**list));
	(*list)[n] = (char *)word;
	(*list)[n + 1] = NULL;
}

static int set_value(const struct option_row *r, const char *value, void *at)
{
	switch (r->kind) {
	case OPTION_NUMBER:
		return set_number_option(r, value, at);
	case OPTION_FIGURE:
		return set_figure(r, value, at);
	case OPTION_SIZE:
	case OPTION_LIMIT:
		return set_amount(r, value, at);
	case OPTION_WORD:
		return set_word(r, value, at);
	case OPTION_CLASS:
		return set_class(r, value, at);
	case OPTION_MOMENT:
		return moments_parse(value, at);
	case OPTION_MANY:
		add_word(at, value);
		return 0;
	default:
		*(const char **)at = value;
		return 0;
	}
}

static void note_given(struct parse *p, const struct option_row *r, const char *into,
		       const char *value)
{
	size_t room = strlen(r->name) + strlen(value ? value : "") + 4;
	char *word;

	if (r->of_one || into != p->into)
		return;
	word = need_new(room);
	snprintf(word, room, "--%s%s%s", r->name, value ? "=" : "", value ? value : "");
	add_word(&p->common->given, word);
}

static int set_option(struct parse *p, const struct option_row *r, char *into, const char *value)
{
	if (r->kind == OPTION_SWITCH) {
		if (value)
			return say_usage("--%s takes no value", r->name);
		*(bool *)(into + r->offset) = true;
		note_given(p, r, into, NULL);
		return 0;
	}
	if (!value && *p->next && strcmp(*p->next, "--") && !(r->alone && **p->next == '-'))
		value = *p->next++;
	if (!value)
		value = r->alone;
	if (!value)
		return say_usage("--%s needs a value: %s", r->name, r->argument);
	note_given(p, r, into, value);
	return set_value(r, value, into + r->offset);
}

static int parse_option(struct parse *p, const char *word)
{
	const struct option_row *r;
	const char *value = NULL;
	char *into;

	if (word[1] == '-') {
		size_t len = strcspn(word + 2, "=");

		r = find_option(p, word + 2, len, false, &into);
		if (word[2 + len])
			value = word + 2 + len + 1;
	} else {
		r = find_option(p, word + 1, 1, true, &into);
		if (word[2])
			value = word + 2;
	}
	if (!r)
		return unknown_option(p, word);
	return set_option(p, r, into, value);
}

static int parse_operand(struct parse *p, char **word)
{
	const struct operand_row *o = p->operand;
	void *at = o ? p->into + o->offset : NULL;

	if (!o || !o->name)
		return say_usage("one argument too many: \"%s\"; see gpumemtrace %s --help", *word,
				 p->command->name);
	if (o->kind == OPERAND_MANY || o->kind == OPERAND_RUN) {
		if (o->kind == OPERAND_RUN && !p->many)
			*(const char **)at = *word;
		add_word(o->kind == OPERAND_RUN ? &p->common->files : at, *word);
		p->many++;
		return 0;
	}
	if (o->kind == OPERAND_REST) {
		*(char ***)at = word;
		while (*p->next)
			p->next++;
	} else {
		*(const char **)at = *word;
	}
	p->operand++;
	return 0;
}

/* The command begins after "--", even if the optional operand before it was not given. */
static bool rest_replaces(const struct operand_row *o)
{
	return o->name && (o->kind == OPERAND_OPTIONAL || o->kind == OPERAND_MANY) &&
	       o[1].kind == OPERAND_REST;
}

static int missing_operand(const struct parse *p)
{
	const struct operand_row *o = p->operand;

	if (!o || !o->name || o->kind == OPERAND_OPTIONAL || p->many || p->common->help)
		return 0;
	if (o->kind == OPERAND_REST && o > p->command->operands && o[-1].kind == OPERAND_OPTIONAL)
		return 0; /* FILE or -- COMMAND: the file was given */
	return say_usage("%s is missing; see gpumemtrace %s --help",
			 o->kind == OPERAND_REST ? "the command to run (after --)" : o->name,
			 p->command->name);
}

/* Only OPTION_TEXT can be `needed`, and only OPTION_SWITCH can be `no_json`. */
static int check_given(const struct parse *p)
{
	for (const struct option_row *r = p->command->options; r->name; r++) {
		const char *at = p->into + r->offset;

		if (r->needed && !*(const char *const *)at)
			return say_usage("-%c %s is missing: %s", r->letter, r->argument,
					 r->needed);
		if (r->no_json && *(const bool *)at && p->common->json)
			return say_usage("--%s and --json exclude each other; choose one", r->name);
	}
	return 0;
}

void *options_new(const struct command *c)
{
	char *into = need_new(c->size);

	for (const struct option_row *r = c->options; r && r->name; r++)
		if (r->kind == OPTION_NUMBER)
			*(long *)(into + r->offset) = r->initial;
		else if (r->kind == OPTION_CLASS)
			*(int *)(into + r->offset) = (int)r->initial;
		else if (r->kind == OPTION_LIMIT)
			*(struct option_amount *)(into + r->offset) =
				(struct option_amount){ .amount = { true, (double)r->initial } };
		else if (r->kind == OPTION_MOMENT && r->initial == AT_PEAK)
			moments_parse("peak", (struct moment_query *)(into + r->offset));
	return into;
}

int options_parse(const struct command *c, char **argv, void *into, struct options_common *common)
{
	struct parse p = { c, argv, into, common, c->operands, 0 };
	bool ended = false;
	int rc = 0;

	while (!rc && *p.next) {
		char **word = p.next++;

		if (!ended && !strcmp(*word, "--")) {
			ended = true;
			if (p.operand && rest_replaces(p.operand))
				p.operand++;
		} else if (!ended && (*word)[0] == '-' && (*word)[1])
			rc = parse_option(&p, *word);
		else
			rc = parse_operand(&p, word);
	}
	if (!rc)
		rc = missing_operand(&p);
	return rc || common->help ? rc : check_given(&p);
}

void options_free(const struct command *c, void *into, struct options_common *common)
{
	for (const struct operand_row *o = c->operands; o && o->name; o++)
		if (o->kind == OPERAND_MANY)
			free(*(char ***)((char *)into + o->offset));
	for (const struct option_row *r = c->options; r && r->name; r++)
		if (r->kind == OPTION_MANY)
			free(*(char ***)((char *)into + r->offset));
	for (char **word = common->given; word && *word; word++)
		free(*word);
	free(common->given);
	free(common->files);
	free(into);
}

static void help_rows(const struct option_row *r, FILE *out)
{
	char left[64];

	for (; r && r->name; r++) {
		int n = snprintf(left, sizeof(left), "  %c%c%c --%s", r->letter ? '-' : ' ',
				 r->letter ? r->letter : ' ', r->letter ? ',' : ' ', r->name);

		if (r->argument)
			snprintf(left + n, sizeof(left) - n, " %s", r->argument);
		fprintf(out, "%-28s %s\n", left, r->help);
	}
}

static void wrapped(const char *text, FILE *out)
{
	size_t column = 0;

	while (*text) {
		size_t len = strcspn(text, " ");

		if (column && column + 1 + len > 79) {
			fputc('\n', out);
			column = 0;
		}
		column += fprintf(out, "%s%.*s", column ? " " : "", (int)len, text);
		text += len + strspn(text + len, " ");
	}
	fputc('\n', out);
}

void options_help(const struct command *c, FILE *out)
{
	fprintf(out, "usage: gpumemtrace %s [OPTION...]", c->name);
	for (const struct operand_row *o = c->operands; o && o->name; o++)
		if (o->kind == OPERAND_REST)
			fprintf(out,
				o == c->operands	    ? " [--] %s..."
				: o[-1].kind == OPERAND_ONE ? " -- %s..."
							    : " [-- %s...]",
				o->name);
		else if (o->kind == OPERAND_MANY || o->kind == OPERAND_RUN)
			fprintf(out, " %s...", o->name);
		else
			fprintf(out, o->kind == OPERAND_OPTIONAL ? " [%s]" : " %s", o->name);
	fputs("\n\n", out);
	wrapped(c->text, out);
	fputc('\n', out);
	help_rows(c->options, out);
	help_rows(rank_rows(c), out);
	help_rows(common_rows, out);
	fprintf(out, "\nManual: man gpumemtrace-%s\n", c->name);
}

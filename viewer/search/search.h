/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A search for the cards and settings that a program fits: which runs are needed, which answers
 * follow from them without a run, and the largest values. Runs are processes, as many at once as
 * cores and memory allow.
 */
#ifndef VIEWER_SEARCH_H
#define VIEWER_SEARCH_H

#include "../base/emit.h"
#include "trial.h"

/* What is said of one card with one setting. */
struct cell {
	const struct card *card;
	struct setting setting;
	struct trial *trial; /* that it rests on: its own run, or one of the same generation */
	bool measured;	     /* it is its own */
	enum ending verdict;
	bool fits, failed;
	uint64_t device; /* the most that is used of this card; of a refused run, up to there */
};

/* The largest value that fits, of the first name that is counted. */
struct largest {
	const struct card *card;
	struct setting setting; /* with that value; NULL in its place: none fits */
	uint64_t low, high;	/* fits (0: none), does not fit (0: none such is known) */
	struct trial *low_trial, *high_trial;
	uint64_t step; /* between values that are tried */
	unsigned probes;
	bool done;
};

/* need = base + each * value, fitted to the runs on one card. */
struct fitted {
	const struct card *card;
	struct setting setting; /* of the other names */
	double base, each;
	double error; /* share of the need by which a run is off, at most */
	size_t points;
};

struct search {
	struct plan plan;
	struct card *cards;
	size_t card_count;
	long jobs;	/* 0: as cores and memory allow */
	bool temporary; /* the folder goes with the search */

	struct trial **trials;
	size_t trial_count, trial_room;
	struct cell *cells; /* settings x cards, in this order */
	size_t cell_count;
	struct largest *largest;
	size_t largest_count, largest_room;
	struct fitted *lines;
	size_t line_count, line_room;
	size_t ran, kept; /* runs of now, and of an earlier search */
};

#define SEARCH_INTERRUPTED 130

/* All of it. 0, or a sentence was said and the exit code. */
int search_perform(struct search *s);
void search_free(struct search *s);
/* By what was found; where none fits and some failed it says why. */
bool search_failed(const struct search *s); /* all did */
int search_code(const struct search *s);

/* Steps, or seconds of work, until memory runs out on this card; 0: its peak does not rise. */
uint64_t search_ends(const struct cell *c);

/* Parts of it, one file each. */
struct trial *search_trial(struct search *s, const struct card *card, const struct setting *to);
int search_run(struct search *s, struct trial **list, size_t count); /* those without an answer */
int search_cells(struct search *s);
int search_largest(struct search *s);
void search_lines(struct search *s);

/* Whether two cards are of one code generation: what PyTorch decides by the compute capability
 * comes out the same. */
bool search_same_generation(const struct card *a, const struct card *b);

/* What it found, as text, as JSON, as a page in its folder. */
void search_text(struct search *s, struct emit *out);
void search_document(struct search *s, struct emit *out, const char *key);
int search_page(struct search *s);

#endif

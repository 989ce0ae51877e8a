/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A search for the cards and settings that a program fits: which runs are needed, which answers
 * follow without a run, and the largest values. Each run is a process. As many run at once as cores
 * and memory allow.
 */
#ifndef VIEWER_SEARCH_H
#define VIEWER_SEARCH_H

#include "../base/emit.h"
#include "trial.h"

/* The answer for one card with one setting. */
struct cell {
	const struct card *card;
	struct setting setting;
	struct trial *trial; /* its own run, or one of the same generation */
	bool measured;	     /* the run is its own */
	enum ending verdict;
	bool fits, failed;
	uint64_t device; /* peak use of this card; of a run that ran out of memory, until then */
};

/* The largest value that fits, for the first numeric name. */
struct largest {
	const struct card *card;
	struct setting setting; /* the setting with that value; NULL in its place: none fits */
	uint64_t low, high;	/* fits (0: none), does not fit (0: none is known) */
	struct trial *low_trial, *high_trial;
	uint64_t step; /* between values that are tried */
	unsigned probes;
	bool done;
};

/* need = base + each * value, fitted to the runs on one card. */
struct fitted {
	const struct card *card;
	struct setting setting; /* values of the other names */
	double base, each;
	double error; /* largest relative error of a run */
	size_t points;
};

struct search {
	struct plan plan;
	struct card *cards;
	size_t card_count;
	long jobs;	/* 0: limited by cores and memory */
	bool temporary; /* the folder is removed after the search */

	struct trial **trials;
	size_t trial_count, trial_room;
	struct cell *cells; /* settings x cards, in this order */
	size_t cell_count;
	struct largest *largest;
	size_t largest_count, largest_room;
	struct fitted *lines;
	size_t line_count, line_room;
	size_t ran, kept; /* runs now, and results of an earlier search */
};

#define SEARCH_INTERRUPTED 130

/* Performs the whole search. Returns 0, or an exit code after one error message. */
int search_perform(struct search *s);
void search_free(struct search *s);
/* The exit code for the result; if nothing fits and some runs failed, it prints why. */
bool search_failed(const struct search *s); /* all did */
int search_code(const struct search *s);

/* Steps, or seconds of work, until this card is out of memory; 0: the peak does not rise. */
uint64_t search_ends(const struct cell *c);

/* Parts of it, one file each. */
struct trial *search_trial(struct search *s, const struct card *card, const struct setting *to);
int search_run(struct search *s, struct trial **list, size_t count); /* if without result */
int search_cells(struct search *s);
int search_largest(struct search *s);
void search_lines(struct search *s);

/* Whether two cards are of one code generation, so that PyTorch makes the same decisions by compute
 * capability. */
bool search_same_generation(const struct card *a, const struct card *b);

/* Output of the result: text, JSON, and a page in the search's folder. */
void search_text(struct search *s, struct emit *out);
void search_document(struct search *s, struct emit *out, const char *key);
int search_page(struct search *s);

#endif

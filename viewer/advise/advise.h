/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What would lower a run's peak, and by how much. A finding says which lives a change of the
 * program would shorten, take away or make smaller (a plan), and the run is computed with these
 * lives: its peak, wherever that would be, is the promise. Findings stand in findings.def.
 */
#ifndef VIEWER_ADVISE_H
#define VIEWER_ADVISE_H

#include "../base/human.h"
#include "../documents/document.h"
#include "plan.h"

#define ADVISE_TEXT 600

enum finding_known { KNOWN_computed, KNOWN_replayed, KNOWN_run };

struct finding {
	size_t order;	  /* in which it was found */
	const char *kind; /* its row's name in findings.def */
	enum finding_known known;
	struct owner owner; /* that the change is about; no function = none */
	char what[ADVISE_TEXT], how[ADVISE_TEXT];
	struct life_plan plan;
	/* Where what is saved is not exact: the other end, of a plan that promises less. */
	bool range;
	struct life_plan cautious;
	char setting[ADVISE_TEXT]; /* of the environment, that a run can try; "" = none */
	bool about;    /* neither end is a bound: autograd decides what a recording does not say */
	bool reserved; /* it is about what the framework's cache holds, not about blocks */

	uint64_t saves, least; /* least: as much as saves where it is exact */
	uint64_t peak;	       /* that is left */
};

struct advise {
	struct timeline *timeline;
	const struct lives *lives;
	uint64_t peak, peak_seq;
	size_t peak_step;
	uint16_t *classes;     /* of each life: a bit for each class that it ever was of; 0: it does
				  not count on this device */
	uint64_t *released;    /* of each life: when the latest graph let it go, 0 = never */
	uint64_t *saved;       /* and when the latest one took it */
	uint64_t reserved;     /* the most that the framework's cache held */
	struct finding *items; /* the largest first */
	size_t count, room;
};

/* A life as findings ask of it. */
struct advised {
	uint32_t life, stack;
	const struct position *born;
	uint64_t size, from, until; /* events; until: PLAN_END = it did not end */
	unsigned classes;
};

/* 0, or a sentence was said and the exit code. */
int advise_open(struct advise *a, struct timeline *t);
/* Sorts the findings, the small ones go. */
void advise_choose(struct advise *a);
void advise_close(struct advise *a);

/* False: it does not count, or was never of one of these classes (bits). */
bool advise_life(const struct advise *a, uint32_t life, unsigned classes, struct advised *out);
#define ADVISE_EACH(a, classes, l)                                        \
	for (uint32_t life_ = 0; life_ < (a)->lives->rows.count; life_++) \
		if (advise_life(a, life_, classes, &(l)))

#define CLASS_BIT(name) (1u << CATEGORY_##name)

/* A finding of that kind without any plan. */
struct finding *advise_add(struct advise *a, const char *kind);
/* A text in the manner of printf. */
void advise_put(char text[ADVISE_TEXT], const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* The first event of the next span of that phase that begins after the event; PLAN_END = none. */
uint64_t advise_next(const struct advise *a, uint64_t seq, enum phase phase);
/* A backward pass ran at that event. */
bool advise_in_backward(const struct advise *a, uint64_t seq);
/* The last event of the step that the event is in. */
uint64_t advise_step_end(const struct advise *a, uint64_t seq);
/* Inside of a function whose name has that word; its name, or NULL. */
const char *advise_frame(struct advise *a, uint32_t stack, const char *word);
/* The optimizer that the run was trained with: "AdamW", "" = none was seen. */
const char *advise_optimizer(const struct advise *a);

/* Each looks for what it is about and adds what it finds. */
typedef void advise_find(struct advise *a);
#define FINDING(name, find) advise_find find;
#include "findings.def"
#undef FINDING

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The certainty of a verdict: the share of bytes that its rule classed correctly in programs with
 * known classes, with autograd's tags or without. precision.def is written by
 * tests/classes/precision.py; no figure in it is chosen by hand.
 */
#include "rules.h"
#include "thresholds.h"

struct measured {
	uint64_t right, wrong; /* bytes, over all marks of all programs */
	unsigned programs;     /* in which the rule decided something */
};

static const struct precision {
	const char *rule;
	struct measured on, off;
} table[] = {
#include "precision.def"
};

/* Hundredths of a percent, rounded down; -1 = too few programs or bytes. */
static int share_of(const struct classifier *c, struct verdict v)
{
	const char *rule = verdict_rule(v);

	if (verdict_is_held(v))
		return 10000;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		const struct measured *m = c->m->tags ? &table[i].on : &table[i].off;

		if (strcmp(table[i].rule, rule))
			continue;
		if (m->programs < PROGRAMS_LEAST || m->right + m->wrong < BYTES_LEAST)
			return -1;
		return (int)(m->right * 10000 / (m->right + m->wrong));
	}
	return -1;
}

const char *verdict_certainty(const struct classifier *c, struct verdict v)
{
	int share = share_of(c, v);

	return share >= CERTAIN_LEAST ? "certain" : share >= LIKELY_LEAST ? "likely" : "guess";
}

int verdict_percent(const struct classifier *c, struct verdict v)
{
	int share = share_of(c, v);

	return share < 0 ? -1 : share / 100;
}

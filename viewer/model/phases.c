/* SPDX-License-Identifier: Apache-2.0 */
/* The phases by name. */
#include "spans.h"

static const struct {
	const char *name, *text, *noun;
	char letter;
} phases[PHASES] = {
	[PHASE_SETUP] = { "setup", "setup", "setup", 's' },
	[PHASE_FORWARD] = { "forward", "forward", "forward pass", 'F' },
	[PHASE_BACKWARD] = { "backward", "backward", "backward pass", 'B' },
	[PHASE_OTHER] = { "other", "between passes", "time between passes", '-' },
	[PHASE_OPTIMIZER] = { "optimizer", "optimizer step", "optimizer step", 'O' },
	[PHASE_ZERO_GRAD] = { "zero_grad", "zero_grad", "call of zero_grad", 'z' },
	[PHASE_EVALUATION] = { "evaluation", "evaluation", "evaluation", 'E' },
};

const char *phase_name(enum phase phase)
{
	return phases[phase].name;
}

const char *phase_text(enum phase phase)
{
	return phases[phase].text;
}

const char *phase_noun(enum phase phase)
{
	return phases[phase].noun;
}

char phase_letter(enum phase phase)
{
	return phases[phase].letter;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The phases by name. */
#include "spans.h"

static const struct {
	const char *name, *text, *noun;
} phases[PHASES] = {
	[PHASE_SETUP] = { "setup", "setup", "setup" },
	[PHASE_FORWARD] = { "forward", "forward", "forward pass" },
	[PHASE_BACKWARD] = { "backward", "backward", "backward pass" },
	[PHASE_OTHER] = { "other", "between passes", "time between passes" },
	[PHASE_OPTIMIZER] = { "optimizer", "optimizer step", "optimizer step" },
	[PHASE_ZERO_GRAD] = { "zero_grad", "zero_grad", "call of zero_grad" },
	[PHASE_EVALUATION] = { "evaluation", "evaluation", "evaluation" },
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

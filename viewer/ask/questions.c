/* SPDX-License-Identifier: Apache-2.0 */
/* The table of questions about recordings. */
#include "command.h"

#define QUESTIONS_ALONE
#include "command_tables.h"

static const struct command *const questions[] = {
#define COMMAND(name, ...) &command_##name,
#include "commands.def"
};

const struct command *question_find(const char *name)
{
	const struct command *const *q = FIRST_OF(
		x, questions, sizeof(questions) / sizeof(*questions), !strcmp((*x)->name, name));

	return q ? *q : NULL;
}

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
	for (size_t i = 0; i < sizeof(questions) / sizeof(questions[0]); i++)
		if (!strcmp(questions[i]->name, name))
			return questions[i];
	return NULL;
}

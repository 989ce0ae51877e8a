/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of the commands that are no question (ask/questions.c has those of the others). */
#include "../ask/command.h"
#include "../export/export.h"
#include "run_program.h"

static const char export_words[] =
#define EXPORT(name, ...) #name " "
#include "../export/export_formats.def"
	;

#define OTHERS_ALONE
#include "../ask/command_tables.h"

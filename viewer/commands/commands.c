/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of the commands that are not questions; ask/questions.c has those of the questions. */
#include "../ask/command.h"
#include "../export/export.h"
#include "run_program.h"

static const char export_words[] =
#define EXPORT(name, ...) #name " "
#include "../export/export_formats.def"
	;

#define OTHERS_ALONE
#include "../ask/command_tables.h"

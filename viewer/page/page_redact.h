/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What --redact takes out of a recording before a page is made of it: names of files that belong to
 * the user become local1.py, local2.py, ...; of installed ones the last part stays. In names of the
 * user's ranges and of threads, words that are a path, an argument or the host are left out. As
 * this is done to the definitions, whatever is made of them knows no other names.
 */
#ifndef VIEWER_PAGE_REDACT_H
#define VIEWER_PAGE_REDACT_H

#include "../recording/recording.h"

struct redact {
	struct redact_file {
		char *path, *alias;
	} * files;
	size_t count, room;
	char **texts; /* that were made */
	size_t text_count, text_room;
};

void redact_recording(struct redact *r, struct recording *recording);
/* The facts about the process, and the libraries: paths, arguments, host and branch are left out.
 */
void redact_facts(struct redact *r, struct recording *recording);
/* What is shown instead of the name of a file. */
const char *redact_path(struct redact *r, const char *path);
void redact_free(struct redact *r);

#endif

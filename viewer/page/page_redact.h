/* SPDX-License-Identifier: Apache-2.0 */
/*
 * --redact: removes private names from a recording before a page is made. Names of the user's files
 * become local1.py, local2.py, ...; of installed files the last part stays. Words that are a path,
 * an argument or the host are removed from names of ranges and threads. The definitions themselves
 * are changed, so that no part of the page can contain the old names.
 */
#pragma once

#include "../recording/recording.h"

struct redact {
	struct redact_file {
		char *path, *alias;
	} * files;
	size_t count, room;
	char **texts; /* redacted texts, which definitions refer to */
	size_t text_count, text_room;
};

void redact_recording(struct redact *r, struct recording *recording);
/* Removes paths, arguments, host and branch from the facts about the process and its libraries. */
void redact_facts(struct redact *r, struct recording *recording);
/* The name that replaces a file's name. */
const char *redact_path(struct redact *r, const char *path);
void redact_free(struct redact *r);

/* SPDX-License-Identifier: Apache-2.0 */
#include "search.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../base/say.h"
#include "folder.h"

static int make_folder(struct search *s)
{
	char *folder = s->plan.folder;
	int rc = folder_make(folder, "fit", &s->temporary);

	if (!rc && !s->temporary && access(folder, W_OK | X_OK))
		rc = say_error(EXIT_UNREADABLE, "%s: nothing can be written to this folder: %s",
			       folder, strerror(errno));
	return rc;
}

static bool any(const struct search *s, enum ending verdict)
{
	for (size_t i = 0; i < s->cell_count; i++)
		if (s->cells[i].verdict == verdict)
			return true;
	return false;
}

/* If no run gave an answer, the program itself is at fault. */
bool search_failed(const struct search *s)
{
	return !any(s, ENDING_FITS) && !any(s, ENDING_REFUSED) && !any(s, ENDING_UNSTABLE);
}

int search_code(const struct search *s)
{
	if (any(s, ENDING_FITS))
		return EXIT_OK;
	for (size_t i = 0; i < s->cell_count; i++)
		if (s->cells[i].failed)
			return trial_say_failure(s->cells[i].trial, &s->plan);
	return EXIT_CHECK;
}

int search_perform(struct search *s)
{
	int rc = make_folder(s);

	if (rc)
		return rc;
	rc = search_cells(s);
	if (!rc && !search_failed(s))
		rc = search_largest(s);
	if (!rc)
		search_lines(s);
	say_progress_end();
	if (rc == SEARCH_INTERRUPTED && !s->temporary)
		say_error(rc, "interrupted; the same command goes on with the runs in %s",
			  s->plan.folder);
	if (!rc && !s->temporary)
		rc = search_page(s);
	return rc;
}

void search_free(struct search *s)
{
	if (s->temporary)
		folder_remove(s->plan.folder);
	for (size_t i = 0; i < s->trial_count; i++) {
		trial_free(s->trials[i]);
		free(s->trials[i]);
	}
	free(s->trials);
	free(s->cells);
	free(s->largest);
	free(s->lines);
	free(s->cards);
	vary_free(&s->plan.varied);
}

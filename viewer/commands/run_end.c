/* SPDX-License-Identifier: Apache-2.0 */
#include "run_end.h"

#include <stdio.h>

#include "../base/say.h"
#include "../oom/oom_ranks.h"

static bool explain_end(struct run_end *e, const char *before, struct timeline *t, const char *path)
{
	struct summary s = { 0 };
	bool found = summary_find_end(&s, t, path);

	if (found)
		snprintf(e->text, sizeof(e->text), "%s%s%s", before, *before ? ": " : "",
			 s.items[0].text);
	summary_free(&s);
	return found;
}

static bool look_at_end(struct run_end *e, const char *before, const char *path)
{
	struct recording r;
	struct timeline t;
	bool found = false;

	if (recording_open(&r, path))
		return false;
	if (!timeline_open_any(&t, &r)) {
		found = explain_end(e, before, &t, path);
		timeline_close(&t);
	}
	recording_close(&r);
	return found;
}

/* Explains the first process that ran out of memory and did not go on. */
void run_end_find(struct run_end *e, const struct run_result *f, int code)
{
	const char *folder = run_ranks_folder(&f->ranks);
	struct oom_ranks all;
	bool alone = f->files == 1, found = false;

	e->text[0] = 0;
	if (!code || !f->refused || !f->files || oom_ranks_find(&all, f->paths, 0))
		return;
	for (size_t i = 0; i < all.count && (all.items[i].failed || alone) && !found; i++) {
		shell_word(folder ? folder : all.items[i].path, e->file);
		found = look_at_end(e, alone ? "" : all.items[i].name, all.items[i].path);
	}
	oom_ranks_free(&all);
}

void run_end_tell(const struct run_end *e)
{
	if (!e->text[0])
		return;
	say_note("%s", e->text);
	say_note("next: gpumemtrace oom %s", e->file);
}

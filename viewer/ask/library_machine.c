/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The library's machine: no terminal, no environment, no signals. Sentences go into the answer to
 * the question that this thread asks.
 */
#include "library_parts.h"

#include "../base/emit_json.h"
#include "../base/machine.h"

static __thread struct asked *asked;

void asked_begin(struct asked *a, struct gpumemtrace_answer *answer)
{
	*answer = (struct gpumemtrace_answer){ 0 };
	a->answer = answer;
	a->lost = false;
	asked = a;
}

int asked_end(struct asked *a, int code)
{
	asked = NULL;
	if (!a->lost)
		return code;
	free(a->answer->sentence);
	a->answer->sentence = strdup("out of memory");
	return EXIT_UNREADABLE;
}

/* Control characters are escaped, as on a terminal. NULL: no memory. */
static char *plain_text(const char *text, size_t len)
{
	char *plain = NULL;
	size_t n;
	FILE *f = open_memstream(&plain, &n);

	if (!f)
		return NULL;
	emit_plain_string(f, text, len);
	fclose(f);
	return plain;
}

static void add_note(struct gpumemtrace_answer *a, const char *text)
{
	size_t before = a->notes ? strlen(a->notes) : 0;
	char *all = realloc(a->notes, before + strlen(text) + 2);

	if (!all)
		return;
	strcpy(all + before, text);
	strcat(all + before, "\n");
	a->notes = all;
}

void machine_say(bool error, const char *text, size_t len)
{
	char *plain = asked ? plain_text(text, len) : NULL;

	if (!plain)
		return;
	if (error) {
		free(asked->answer->sentence);
		asked->answer->sentence = plain;
		return;
	}
	add_note(asked->answer, plain);
	free(plain);
}

void machine_progress(const char *what, uint64_t done, uint64_t all)
{
	(void)what, (void)done, (void)all;
}

/* Every function that allocates is called by a question. */
void machine_out_of_memory(void)
{
	asked->lost = true;
	longjmp(asked->out_of_memory, 1);
}

const char *machine_setting(UNUSED const char *name)
{
	return NULL;
}

bool machine_terminal(UNUSED FILE *f, unsigned *columns, unsigned *rows)
{
	if (columns)
		*columns = 0;
	if (rows)
		*rows = 0;
	return false;
}

bool machine_moves(UNUSED FILE *f)
{
	return false;
}

void machine_unfinished(const char *path, bool begins)
{
	(void)path, (void)begins;
}

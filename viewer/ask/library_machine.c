/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The library's machine: no terminal, no environment, no signals. Sentences go into the answer to
 * the question that this thread asks.
 */
#include "library_parts.h"

#include <setjmp.h>

#include "../base/emit_json.h"
#include "../base/machine.h"

struct asked {
	jmp_buf out_of_memory;
	struct gpumemtrace_answer *answer;
};

static __thread struct asked *asked; /* this thread's question; NULL: none */

int library_ask(struct gpumemtrace_answer *answer, bool *lost, int (*what)(void *ctx), void *ctx)
{
	struct asked a = { .answer = answer };
	int code;

	*answer = (struct gpumemtrace_answer){ 0 };
	if (lost)
		*lost = false;
	asked = &a;
	if (setjmp(a.out_of_memory)) {
		asked = NULL;
		if (lost)
			*lost = true;
		free(answer->sentence);
		answer->sentence = strdup("out of memory");
		return EXIT_UNREADABLE;
	}
	code = what(ctx);
	asked = NULL;
	return code;
}

/* Escapes control characters, as on a terminal. The caller frees it; NULL: out of memory. */
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

/* `asked` is set, because memory is only allocated within library_ask. */
void machine_out_of_memory(void)
{
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

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Folded stacks: the class, then frames from the outermost to the innermost, between semicolons,
 * and the bytes that are alive. One line for each class and stack.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "export_stacks.h"

/* A semicolon parts frames, a new line parts stacks. */
static void folded_write_name(FILE *f, const char *s)
{
	for (; *s; s++)
		fputc(*s == ';' ? ':' : (unsigned char)*s < ' ' ? ' ' : *s, f);
}

static void line(struct export *x, const struct stack_sum *s)
{
	char unnamed[256];
	size_t n = stack_sum_frames(s, x);

	folded_write_name(x->f, category_words(s->category));
	for (size_t i = n; i-- > 0;) {
		const struct frame *f = &x->stacks.frames[i];

		fputc(';', x->f);
		folded_write_name(x->f, export_frame_name(f, unnamed, sizeof(unnamed)));
		if (!f->python)
			continue;
		fputs(" (", x->f);
		folded_write_name(x->f, owners_base(f->file));
		fprintf(x->f, ":%u)", f->line);
	}
	if (!n && s->name) {
		fputc(';', x->f);
		folded_write_name(x->f, defs_string(&x->recording->defs, s->name).s);
	}
	fprintf(x->f, " %" PRIu64 "\n", s->bytes);
}

int export_folded(struct export *x)
{
	struct stack_sums sums;
	int rc = stack_sums_take(&sums, x);

	for (size_t i = 0; !rc && i < sums.count; i++)
		line(x, &sums.items[i]);
	stack_sums_free(&sums);
	return rc;
}

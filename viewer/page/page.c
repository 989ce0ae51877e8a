/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes the documents that a page shows: the classes and phases, the caller's members, and the
 * names that these use. If they are too large for one page, they are written again with less room.
 */
#include "page.h"

#include "../../format/version.h"

#define PAGE_ROOM 4700000 /* bytes; with scripts and style a page has at most 5 MB */

static void emit_classes(struct emit *out)
{
	emit_array(out, "classes");
	for (unsigned i = 0; i < CATEGORIES; i++) {
		char colour[8];

		snprintf(colour, sizeof(colour), "#%06x", categories[i].colour & 0xffffff);
		emit_object(out, NULL);
		emit_text(out, "name", categories[i].name);
		emit_text(out, "words", categories[i].words);
		emit_text(out, "kept", category_kept_words(i));
		emit_text(out, "colour", colour);
		emit_number(out, "level", categories[i].level);
		emit_end(out);
	}
	emit_end(out);
	emit_array(out, "phases");
	for (int i = 0; i < PHASES; i++)
		emit_text(out, NULL, phases[i].text);
	emit_end(out);
}

static void write_documents(struct page *p, void (*write)(struct page *, void *), void *ctx)
{
	emit_object(p->first, NULL);
	emit_text(p->first, "tool", GMT_TOOL_VERSION);
	emit_flag(p->first, "redacted", p->redact != NULL);
	emit_classes(p->first);
	emit_object(p->out, NULL);
	write(p, ctx);
	names_emit_texts(&p->words, p->first);
	names_emit(&p->names, p->out);
	emit_end(p->first);
	emit_end(p->out);
}

static void make_once(struct page_text *text, struct redact *redact, double scale,
		      void (*write)(struct page *, void *), void *ctx)
{
	FILE *first = need_stream(&text->first, &text->first_len);
	FILE *rest = need_stream(&text->rest, &text->rest_len);
	struct page p = { .redact = redact, .scale = scale };

	p.first = emit_open(first, true);
	p.out = emit_open(rest, true);
	names_init(&p.words, redact, scale);
	names_init(&p.names, redact, scale);
	write_documents(&p, write, ctx);
	names_free(&p.words);
	names_free(&p.names);
	emit_close(p.first);
	emit_close(p.out);
	fclose(first);
	fclose(rest);
}

/* The first attempt is nearly always small enough. */
void page_make(struct page_text *text, struct redact *redact, void (*write)(struct page *, void *),
	       void *ctx)
{
	double scale = 1;

	make_once(text, redact, scale, write, ctx);
	for (int i = 0; text->first_len + text->rest_len > PAGE_ROOM && i < 8; i++) {
		scale *= 0.85 * PAGE_ROOM / (text->first_len + text->rest_len);
		page_text_free(text);
		make_once(text, redact, scale, write, ctx);
	}
}

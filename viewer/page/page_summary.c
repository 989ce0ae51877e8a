/* SPDX-License-Identifier: Apache-2.0 */
/* What matters about the run, as `report` says it first: on top of the page. */
#include "page.h"

/* The blocks of such a moment are on the page. */
static void add_key(struct page_lives *l, const struct matter *m)
{
	if (m->seq)
		l->keys[l->key_count++] = (struct key_moment){ .seq = m->seq,
							       .time_ns = m->time_ns,
							       .name = "finding" };
}

void page_summary_find(struct track *t)
{
	const char *file = t->page->redact ? "FILE" : t->recording->path;
	struct values v;

	values_find(&v, &t->timeline->model.reads, &t->timeline->owners);
	summary_find(&t->summary, t->timeline, &v, file);
	values_free(&v);
	for (size_t i = 0; i < t->summary.count; i++)
		add_key(&t->blocks, &t->summary.items[i]);
}

/* Texts of their own: these are never cut. */
void page_summary_emit(struct track *t)
{
	struct emit *out = t->page->first;

	emit_array(out, "summary");
	for (size_t i = 0; i < t->summary.count; i++) {
		const struct matter *m = &t->summary.items[i];

		emit_object(out, NULL);
		emit_text(out, "kind", m->kind);
		emit_number(out, "bytes", m->bytes);
		emit_text(out, "text", m->text);
		emit_text(out, "action", m->action);
		names_owner(&t->page->words, out, &m->owner);
		emit_number(out, "seq", m->seq);
		emit_number(out, "time_ns", m->time_ns);
		emit_end(out);
	}
	emit_end(out);
}

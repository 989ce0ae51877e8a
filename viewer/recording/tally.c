/* SPDX-License-Identifier: Apache-2.0 */
#include "tally.h"

int tally_event(void *ctx, const struct gmt_event *e)
{
	struct tally *t = ctx;

	t->events++;
	t->kinds[e->kind < TALLY_KINDS && gmt_kind_layer(e->kind) ? e->kind : 0]++;
	if (e->kind == GMT_DROPPED)
		t->dropped += e->arg0;
	if (e->kind == GMT_THINNED && e->size)
		t->left_out += e->size - 1;
	if (e->seq <= t->last_seq)
		t->disorder++;
	else
		t->missing += e->seq - t->last_seq - 1;
	t->last_seq = e->seq;
	if (!t->first_ns)
		t->first_ns = e->time_ns;
	t->last_ns = e->time_ns > t->last_ns ? e->time_ns : t->last_ns;
	if (e->stack && !defs_node(t->defs, e->stack))
		t->no_stack++;
	if (e->name && !map_get(&t->defs->strings.ids, e->name))
		t->no_string++;
	if (e->thread && !defs_thread(t->defs, e->thread))
		t->no_thread++;
	return 0;
}

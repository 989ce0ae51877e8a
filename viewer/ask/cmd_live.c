/* SPDX-License-Identifier: Apache-2.0 */
/* live: every block that is alive at a moment. */
#include "../answers/chart.h"
#include "../answers/private_pools.h"
#include "../base/machine.h"
#include "../base/sorted.h"
#include "../classes/classify.h"
#include "../answers/parts.h"
#include "../answers/used.h"
#include "../recording/owners.h"
#include "command.h"

#define BEFORE 59 /* columns in front of the line of code, at most */

COMPARE(by_size, struct block, ORDER(y->size, x->size) ?: ORDER(x->addr, y->addr))

/* Columns that the screen has left for the line of code. */
static size_t columns_left(void)
{
	unsigned columns, rows;

	chart_screen(&columns, &rows);
	return columns > BEFORE + 21 ? columns - BEFORE : 21;
}

struct live_view {
	const struct timeline *timeline;
	const struct moment *moment;
	struct use_around *around; /* for each block; NULL if text is printed */
	struct classifier *classifier;
	struct owners *owners;
	struct pool_sums pools;
	struct room room;
	bool with_rules; /* print all rules that match, for tests/classes/score.py */
	char rules[CLASSIFY_RULES], module[512];
};

static bool live_block_row(void *ctx, size_t i, struct row_live_block *row)
{
	struct live_view *v = ctx;
	const struct block *b = &v->moment->blocks[i];
	const struct model *m = &v->timeline->model;
	struct use_around x = v->around ? v->around[i] : (struct use_around){ 0 };
	enum category class = classify(v->classifier, b).category;

	*row = (struct row_live_block){
		.addr = b->addr,
		.size = b->size,
		.category = class,
		.words = timeline_class_words(v->timeline, class, b, v->moment->seq),
		.stack = b->stack,
		.born_ns = b->born_ns,
		MAYBE_THERE(rules, v->with_rules, v->rules),
		.uses = used_count(m, b->life - 1),
		.last_use_ns = used_ns(m, x.before),
		.next_use_ns = used_ns(m, x.after),
		.owner = owners_find(v->owners, b),
		.module = owners_modules_of(v->owners, b->stack, v->module, sizeof(v->module))
	};
	if (v->with_rules)
		classify_all(v->classifier, b, v->rules, sizeof(v->rules));
	return true;
}

static void print_blocks(struct emit *out, const struct model *m, const struct live_view *v,
			 struct moment *mo, const struct row_live *row, long top)
{
	const struct text_column columns[] = {
		TEXT_COLUMN("address", live_block_addr, 2, 0),
		TEXT_COLUMN("size", live_block_size, 2, 0),
		TEXT_COLUMN("class", live_block_words, 2, -1),
		TEXT_COLUMN("stack", live_block_stack, 2, 0),
		TEXT_COLUMN("allocated at", live_block_owner, 2, -1, .room = columns_left()),
	};
	char when[MOMENTS_WHEN];

	SORT(mo->blocks, mo->count, by_size);
	emit_title(out, "%s in %zu block%s on device %d%s", B(mo->bytes), mo->count,
		   mo->count == 1 ? "" : "s", mo->device,
		   moments_when(m, mo->seq, mo->time_ns, when, sizeof(when)));
	if (row->bytes != mo->bytes)
		emit_line(out, "In use were %s: the recording does not have the other blocks",
			  B(row->bytes));
	if (v->pools.count || v->room.waiting)
		emit_figure(out, 22, "cached, not in use", v->room.cached, NULL);
	private_pools_print(&v->pools, &v->room, 22, out);
	emit_top(out, live_block, &row->blocks, columns, top, "  ");
}

int run_live(const struct live_options *o, struct emit *out, struct timeline *t, struct moment *mo)
{
	struct live_view view = { .timeline = t,
				  .moment = mo,
				  .around = emit_json(out) ? uses_around(&t->model, mo) : NULL,
				  .classifier = timeline_classifier(t),
				  .owners = &t->owners,
				  .pools = private_pools(&t->model, mo, &t->owners),
				  .room = room_at(&t->model, mo, NULL),
				  .with_rules = machine_setting("GPUMEMTRACE_TEST_RULES") };
	struct row_live row = { .device = mo->device,
				.time_ns = mo->time_ns,
				.bytes = moments_bytes(&t->model, mo),
				.reserved_bytes = view.room.reserved,
				.cached_bytes = view.room.cached,
				.waiting_bytes = view.room.waiting,
				.pools = private_pools_rows(&view.pools),
				.blocks = { mo->count, live_block_row, &view } };

	emit_document(out, live, &row);
	free(view.around);
	if (!emit_json(out)) {
		timeline_look(t, mo->device); /* the class's words need the steps */
		print_blocks(out, &t->model, &view, mo, &row, o->top);
	}
	return 0;
}

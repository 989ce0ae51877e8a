/* SPDX-License-Identifier: Apache-2.0 */
#include "snapshot.h"

#include "../base/need.h"

void snapshot_sort(struct snapshot *s, struct owners *owners)
{
	struct classifier *c = classifier_new(s->model, owners);

	s->classes = need_new(s->moment.count + 1);
	for (size_t i = 0; i < s->moment.count; i++) {
		const struct block *b = &s->moment.blocks[i];
		unsigned class = classify(c, b).category;

		s->classes[i] = class;
		s->bytes[class] += b->size;
		s->blocks[class]++;
	}
	classifier_free(c);
}

/* Spans know the time of what need not be of a block. */
static uint64_t time_of_event(const struct timeline *t, uint64_t seq)
{
	for (size_t i = 0; i < t->model.spans.count; i++) {
		const struct extent *x = &t->model.spans.items[i].extent;

		if (x->last_seq == seq)
			return x->last_ns;
		if (x->first_seq == seq)
			return x->first_ns;
		if (x->peak_seq == seq)
			return x->peak_ns;
	}
	return 0;
}

void snapshot_take(struct snapshot *s, struct timeline *t, uint64_t seq)
{
	*s = (struct snapshot){ .model = &t->model,
				.moment = { .device = t->device,
					    .seq = seq,
					    .framework = t->framework,
					    .time_ns = time_of_event(t, seq) } };
	model_take(&t->model, &s->moment);
	snapshot_sort(s, &t->owners);
}

void snapshot_free(struct snapshot *s)
{
	free(s->classes);
	moment_free(&s->moment);
}

uint64_t snapshot_bytes(const struct snapshot *s, const char *category)
{
	int c = category_by_name(category);

	return c < 0 ? 0 : s->bytes[c];
}

/* Bytes by pass, the number of the pass as the key; those are not many at a time. */
struct passes {
	struct map ids;
	uint64_t *bytes, most;
	size_t count, room;
};

static void add_to_pass(struct passes *p, const struct block *b, uint32_t pass)
{
	uint64_t *bytes = map_item(&p->ids, pass, p->bytes, p->count, p->room);

	*bytes += b->size;
	if (*bytes > p->most)
		p->most = *bytes;
}

size_t snapshot_passes(const struct snapshot *s, uint64_t since, uint32_t classes)
{
	struct passes p = { .count = 0 };
	size_t held = 0;

	for (size_t i = 0; i < s->moment.count; i++) {
		const struct block *b = &s->moment.blocks[i];
		const struct position *born = model_born(s->model, b);

		if (born->stage == STAGE_FORWARD && b->seq >= since &&
		    classes & 1u << s->classes[i])
			add_to_pass(&p, b, born->forwards);
	}
	for (size_t i = 0; i < p.count; i++)
		held += p.bytes[i] >= p.most / 8;
	free(p.bytes);
	map_free(&p.ids);
	return held;
}

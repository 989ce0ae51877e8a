/* SPDX-License-Identifier: Apache-2.0 */
#include "snapshot.h"

#include <stdlib.h>
#include <string.h>

#include "../base/need.h"
#include "moments.h"

void snapshot_sort(struct snapshot *s, const struct model *facts, struct owners *owners)
{
	struct classifier *c = classifier_new(facts, owners);

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

int snapshot_take(struct snapshot *s, struct timeline *t, uint64_t seq)
{
	int rc;

	*s = (struct snapshot){
		.moment = { .device = t->device, .seq = seq, .framework = t->framework }
	};
	rc = moments_take(t->recording, &s->model, &s->moment, 1);
	if (rc) {
		model_free(&s->model);
		return rc;
	}
	snapshot_sort(s, &s->model, &t->owners);
	return 0;
}

void snapshot_free(struct snapshot *s)
{
	free(s->classes);
	moment_free(&s->moment);
	model_free(&s->model);
}

uint64_t snapshot_bytes(const struct snapshot *s, const char *category)
{
	int c = category_by_name(category);

	return c < 0 ? 0 : s->bytes[c];
}

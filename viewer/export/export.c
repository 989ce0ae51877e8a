/* SPDX-License-Identifier: Apache-2.0 */
#include "export.h"

void export_series(struct export *x, const struct series_sink *sink)
{
	const struct series s = { .model = &x->timeline.model,
				  .classifier = timeline_classifier(&x->timeline),
				  .device = -1 };

	series_run(&s, sink);
}

bool export_counts(const struct export *x, uint32_t life)
{
	const struct lives *l = &x->timeline.model.lives;

	return series_counts(&x->timeline.model,
			     lives_position(l, lives_at(l, life)->born.position));
}

struct verdict export_verdict(struct export *x, uint32_t life, struct block *b)
{
	return series_verdict(timeline_classifier(&x->timeline), &x->timeline.model, life, 0, b);
}

int export_moment(struct export *x, struct moment *mo)
{
	int rc = moments_take(x->recording, &x->timeline.model, mo, &x->query, x->device);

	if (rc)
		return rc;
	FOR_EACH (struct block, b, mo->blocks, mo->count)
		b->category = (uint16_t)classify(timeline_classifier(&x->timeline), b).category;
	return 0;
}

size_t export_frames(struct export *x, uint32_t stack, uint64_t seq)
{
	x->timeline.stacks.count = 0;
	if (stack)
		stacks_read(&x->timeline.stacks, stack, seq);
	return x->timeline.stacks.count;
}

const char *export_frame_name(const struct frame *f, char *buf, size_t room)
{
	if (f->function[0])
		return f->function;
	if (f->module[0])
		snprintf(buf, room, "%s+0x%" PRIx64, owners_base(f->module), f->offset);
	else
		snprintf(buf, room, "0x%" PRIx64, f->ip);
	return buf;
}

uint64_t export_frame_key(const struct frame *f, const char *name)
{
	return map_hash_text(map_hash_text(f->line, name), f->file);
}

uint64_t export_wall(const struct export *x, uint64_t time_ns)
{
	return time_ns + (uint64_t)x->recording->info->realtime_minus_monotonic_ns;
}

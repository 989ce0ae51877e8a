/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A profile for pprof (protocol buffers, not compressed), shaped like Go's heap profiles: memory in
 * use at the moment, and memory allocated in the whole run, with the class as a label. Strings,
 * functions and locations are numbered in tables of their own.
 */
#include "../base/bytes.h"
#include "export_stacks.h"

struct pprof {
	struct export *x;
	struct bytes out;
	struct map strings, functions, locations; /* hash -> id */
	uint32_t string_count, function_count, location_count;
	uint32_t class_key;
};

/* Numbers of fields in profile.proto. */
enum { PROFILE_TYPE = 1, PROFILE_SAMPLE = 2, PROFILE_LOCATION = 4, PROFILE_FUNCTION = 5 };
enum { PROFILE_STRING = 6, PROFILE_TIME = 9, PROFILE_DEFAULT = 14 };
enum { WIRE_VARINT = 0, WIRE_BYTES = 2 };

static void put_number(struct bytes *m, unsigned field, uint64_t n)
{
	bytes_varint(m, field << 3 | WIRE_VARINT);
	bytes_varint(m, n);
}

static void put_bytes(struct bytes *m, unsigned field, const void *bytes, size_t len)
{
	bytes_varint(m, field << 3 | WIRE_BYTES);
	bytes_varint(m, len);
	bytes_add(m, bytes, len);
}

static void put_message(struct bytes *m, unsigned field, struct bytes *inner)
{
	put_bytes(m, field, inner->p, inner->len);
	bytes_free(inner);
}

/* String 0 must be the empty one. Readers reject text that is not UTF-8, so bytes that are not
 * become '?'. */
static uint32_t string_id(struct pprof *p, const char *s)
{
	uint32_t at = map_number(&p->strings, map_hash_text(0, s), p->string_count);
	struct bytes text = { 0 };

	if (at < p->string_count)
		return at;
	p->string_count++;
	bytes_add_text(&text, s, strlen(s));
	put_bytes(&p->out, PROFILE_STRING, text.p, text.len);
	bytes_free(&text);
	return at;
}

static uint32_t function_id(struct pprof *p, const char *name, const char *file)
{
	struct bytes m = { 0 };
	uint64_t key = map_hash_text(map_hash_text(1, name), file);
	uint32_t at = map_number(&p->functions, key, p->function_count + 1);

	if (at <= p->function_count)
		return at;
	p->function_count++;
	put_number(&m, 1, at);
	put_number(&m, 2, string_id(p, name));
	put_number(&m, 3, string_id(p, name));
	put_number(&m, 4, string_id(p, file));
	put_message(&p->out, PROFILE_FUNCTION, &m);
	return at;
}

static uint32_t location_id(struct pprof *p, const struct frame *f)
{
	struct bytes m = { 0 }, line = { 0 };
	char unnamed[256];
	const char *name = export_frame_name(f, unnamed, sizeof(unnamed));
	uint32_t function = function_id(p, name, f->file);
	uint32_t at = map_number(&p->locations, (uint64_t)function << 32 | f->line,
				 p->location_count + 1);

	if (at <= p->location_count)
		return at;
	p->location_count++;
	put_number(&line, 1, function);
	put_number(&line, 2, f->line);
	put_number(&m, 1, at);
	put_message(&m, 4, &line);
	put_message(&p->out, PROFILE_LOCATION, &m);
	return at;
}

static void put_class(struct pprof *p, struct bytes *sample, unsigned category)
{
	struct bytes label = { 0 };

	put_number(&label, 1, p->class_key);
	put_number(&label, 2, string_id(p, categories[category].words));
	put_message(sample, 3, &label);
}

/* Innermost frame first, as recorded. */
static void put_sample(struct pprof *p, const struct stack_sum *s)
{
	const uint64_t values[] = { s->all_blocks, s->all_bytes, s->blocks, s->bytes };
	struct bytes m = { 0 }, list = { 0 };
	size_t n = stack_sum_frames(s, p->x);
	const struct frame none = { .function = "(no stack)", .file = "", .module = "" };

	for (size_t i = 0; i < n; i++)
		bytes_varint(&list, location_id(p, &p->x->timeline.stacks.frames[i]));
	if (!n)
		bytes_varint(&list, location_id(p, &none));
	put_message(&m, 1, &list);
	list = (struct bytes){ 0 };
	for (size_t i = 0; i < 4; i++)
		bytes_varint(&list, values[i]);
	put_message(&m, 2, &list);
	put_class(p, &m, s->category);
	put_message(&p->out, PROFILE_SAMPLE, &m);
}

static void put_type(struct pprof *p, const char *type, const char *unit)
{
	struct bytes m = { 0 };

	put_number(&m, 1, string_id(p, type));
	put_number(&m, 2, string_id(p, unit));
	put_message(&p->out, PROFILE_TYPE, &m);
}

static void count_births(struct export *x, struct stack_sums *sums)
{
	const struct lives *l = &x->timeline.model.lives;

	for (uint32_t i = 0; i < l->rows.count; chunks_rest(l->pool), i++) {
		const struct life *life = lives_at(l, i);
		struct stack_sum *s;
		struct block b;

		if (lives_position(l, life->born.position)->device != sums->device ||
		    !export_counts(x, i))
			continue;
		s = stack_sums_at(sums, export_verdict(x, i, &b).category, &b);
		s->all_bytes += lives_request(l, life)->size;
		s->all_blocks++;
	}
}

static void write_profile(struct pprof *p, const struct stack_sums *sums)
{
	string_id(p, "");
	p->class_key = string_id(p, "class");
	put_type(p, "alloc_objects", "count");
	put_type(p, "alloc_space", "bytes");
	put_type(p, "inuse_objects", "count");
	put_type(p, "inuse_space", "bytes");
	for (size_t i = 0; i < sums->count; i++)
		put_sample(p, &sums->items[i]);
	put_number(&p->out, PROFILE_TIME, export_wall(p->x, sums->time_ns));
	put_number(&p->out, PROFILE_DEFAULT, string_id(p, "inuse_space"));
	fwrite(p->out.p, 1, p->out.len, p->x->f);
}

int export_pprof(struct export *x)
{
	struct pprof p = { .x = x };
	struct stack_sums sums;
	int rc = stack_sums_take(&sums, x);

	if (!rc) {
		count_births(x, &sums);
		write_profile(&p, &sums);
	}
	map_items_free(&sums);
	bytes_free(&p.out);
	map_free(&p.strings);
	map_free(&p.functions);
	map_free(&p.locations);
	return rc;
}

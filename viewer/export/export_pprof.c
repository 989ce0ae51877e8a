/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A profile for pprof (protocol buffers, not compressed), shaped like Go's heap profiles: what is
 * in use at the moment, and what was allocated in the whole run; the class is a label. Strings,
 * functions and locations stand in tables of their own.
 */
#include <stdlib.h>
#include <string.h>

#include "../base/need.h"
#include "export_stacks.h"

/* A message as it grows. */
struct message {
	uint8_t *p;
	size_t len, room;
};

struct pprof {
	struct export *x;
	struct message out;
	struct map strings, functions, locations; /* hash -> id */
	uint32_t string_count, function_count, location_count;
	uint32_t class_key;
};

/* Numbers of fields in profile.proto. */
enum { PROFILE_TYPE = 1, PROFILE_SAMPLE = 2, PROFILE_LOCATION = 4, PROFILE_FUNCTION = 5 };
enum { PROFILE_STRING = 6, PROFILE_TIME = 9, PROFILE_DEFAULT = 14 };
enum { WIRE_VARINT = 0, WIRE_BYTES = 2 };

static void put_byte(struct message *m, uint8_t b)
{
	m->p = need_grow(m->p, &m->room, m->len, 1);
	m->p[m->len++] = b;
}

static void put_varint(struct message *m, uint64_t n)
{
	for (; n >= 128; n >>= 7)
		put_byte(m, (uint8_t)(n | 128));
	put_byte(m, (uint8_t)n);
}

static void put_number(struct message *m, unsigned field, uint64_t n)
{
	put_varint(m, field << 3 | WIRE_VARINT);
	put_varint(m, n);
}

static void put_bytes(struct message *m, unsigned field, const void *bytes, size_t len)
{
	const uint8_t *p = bytes;

	put_varint(m, field << 3 | WIRE_BYTES);
	put_varint(m, len);
	for (size_t i = 0; i < len; i++)
		put_byte(m, p[i]);
}

static void put_message(struct message *m, unsigned field, struct message *inner)
{
	put_bytes(m, field, inner->p, inner->len);
	free(inner->p);
}

static uint64_t hash(const char *s, uint64_t h)
{
	h ^= 0xcbf29ce484222325;
	for (; *s; s++)
		h = (h ^ (uint8_t)*s) * 0x100000001b3;
	return h;
}

/* String 0 must be the empty one. What is no UTF-8 would be refused. */
static uint32_t string_id(struct pprof *p, const char *s)
{
	bool fresh;
	uint32_t *at = map_put(&p->strings, hash(s, 0), &fresh);
	size_t len = strlen(s);
	char *copy;

	if (!fresh)
		return *at;
	*at = p->string_count++;
	copy = need_copy(s, len);
	for (size_t i = 0; i < len; i++)
		if ((unsigned char)copy[i] >= 128)
			copy[i] = '?';
	put_bytes(&p->out, PROFILE_STRING, copy, len);
	free(copy);
	return *at;
}

static uint32_t function_id(struct pprof *p, const char *name, const char *file)
{
	struct message m = { 0 };
	bool fresh;
	uint32_t *at = map_put(&p->functions, hash(file, hash(name, 1)), &fresh);

	if (!fresh)
		return *at;
	*at = ++p->function_count;
	put_number(&m, 1, *at);
	put_number(&m, 2, string_id(p, name));
	put_number(&m, 3, string_id(p, name));
	put_number(&m, 4, string_id(p, file));
	put_message(&p->out, PROFILE_FUNCTION, &m);
	return *at;
}

static uint32_t location_id(struct pprof *p, const struct frame *f)
{
	struct message m = { 0 }, line = { 0 };
	char unnamed[256];
	const char *name = export_frame_name(f, unnamed, sizeof(unnamed));
	uint32_t function = function_id(p, name, f->file);
	bool fresh;
	uint32_t *at = map_put(&p->locations, (uint64_t)function << 32 | f->line, &fresh);

	if (!fresh)
		return *at;
	*at = ++p->location_count;
	put_number(&line, 1, function);
	put_number(&line, 2, f->line);
	put_number(&m, 1, *at);
	put_message(&m, 4, &line);
	put_message(&p->out, PROFILE_LOCATION, &m);
	return *at;
}

static void put_class(struct pprof *p, struct message *sample, unsigned category)
{
	struct message label = { 0 };

	put_number(&label, 1, p->class_key);
	put_number(&label, 2, string_id(p, category_words(category)));
	put_message(sample, 3, &label);
}

/* Innermost frame first, as recorded. */
static void put_sample(struct pprof *p, const struct stack_sum *s)
{
	const uint64_t values[] = { s->all_blocks, s->all_bytes, s->blocks, s->bytes };
	struct message m = { 0 }, list = { 0 };
	size_t n = stack_sum_frames(s, p->x);
	struct frame node = { .function = "", .file = "", .module = "" };

	node.function = defs_string(&p->x->recording.defs, s->name).s;
	for (size_t i = 0; i < n; i++)
		put_varint(&list, location_id(p, &p->x->stacks.frames[i]));
	if (!n) {
		node.function = node.function[0] ? node.function : "(no stack)";
		put_varint(&list, location_id(p, &node));
	}
	put_message(&m, 1, &list);
	list = (struct message){ 0 };
	for (size_t i = 0; i < 4; i++)
		put_varint(&list, values[i]);
	put_message(&m, 2, &list);
	put_class(p, &m, s->category);
	put_message(&p->out, PROFILE_SAMPLE, &m);
}

static void put_type(struct pprof *p, const char *type, const char *unit)
{
	struct message m = { 0 };

	put_number(&m, 1, string_id(p, type));
	put_number(&m, 2, string_id(p, unit));
	put_message(&p->out, PROFILE_TYPE, &m);
}

static void count_births(struct export *x, struct stack_sums *sums)
{
	const struct lives *l = &x->facts.lives;

	for (uint32_t i = 0; i < l->rows.count; i++) {
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
	stack_sums_free(&sums);
	free(p.out.p);
	map_free(&p.strings);
	map_free(&p.functions);
	map_free(&p.locations);
	return rc;
}

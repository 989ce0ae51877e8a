/* SPDX-License-Identifier: Apache-2.0 */
#include "ranks_table.h"

#include "../answers/parts.h"
#include "../base/human.h"
#include "../recording/owner_words.h"

/* The device that a rank works on: the one on which it has most. NULL: it has memory on none. */
static const struct ranks_device *home(const struct ranks_row *row)
{
	return GREATEST_OF(x, row->devices, row->device_count, true, x->peak);
}

/* The other rank that works on that device; the number of rows if there is none. UUIDs of
 * simulated devices are the same on every host. */
static size_t who_works_there(const struct ranks_table *t, size_t row, const struct ranks_device *d)
{
	const char *host = t->rows[row].file->host;
	size_t i = 0;

	for (; i < t->run->count; i++) {
		const struct ranks_device *h = home(&t->rows[i]);

		if (i != row && h && d->uuid[0] && !strcmp(h->uuid, d->uuid) &&
		    !strcmp(t->rows[i].file->host, host))
			break;
	}
	return i;
}

/* The least that a rank has where it works: no other rank is there, and contexts are alike. */
uint64_t ranks_elsewhere_context(const struct ranks_table *t)
{
	uint64_t least = 0;

	for (size_t i = 0; i < t->run->count; i++) {
		const struct ranks_device *h = home(&t->rows[i]);

		if (h && h->context && (!least || h->context < least))
			least = h->context;
	}
	return least;
}

uint64_t ranks_elsewhere_sum(const struct ranks_table *t, const struct ranks_elsewhere *e)
{
	const char *host = t->rows[e->row].file->host;
	uint64_t sum = 0, context = ranks_elsewhere_context(t);

	for (size_t i = 0; i < t->run->count; i++)
		for (size_t k = 0; k < t->rows[i].device_count; k++)
			if (!strcmp(t->rows[i].devices[k].uuid, e->device->uuid) &&
			    !strcmp(t->rows[i].file->host, host))
				sum += t->rows[i].devices[k].reserved + context;
	return sum;
}

struct ranks_elsewhere *ranks_elsewhere(const struct ranks_table *t, size_t *count)
{
	struct ranks_elsewhere *all = NULL;
	size_t room = 0;

	*count = 0;
	for (size_t i = 0; i < t->run->count; i++) {
		const struct ranks_device *own = home(&t->rows[i]);

		FOR_EACH (const struct ranks_device, d, t->rows[i].devices,
			  t->rows[i].device_count) {
			size_t of = strcmp(d->uuid, own->uuid) ? who_works_there(t, i, d)
							       : t->run->count;

			if (of < t->run->count)
				*need_item(all, *count, room) =
					(struct ranks_elsewhere){ i, of, d };
		}
	}
	return all;
}

#define MAIN  RANKS_MAIN
#define SUM   RANKS_SUM
#define APART RANKS_APART
#define SOME  RANKS_SOME
#define QUIET RANKS_QUIET
#define EXACT RANKS_EXACT

static const struct ranks_column all_columns[] = {
#define COLUMN(command, key, title, document, path, kind, flags) \
	{ #command, #key, title, RANKS_##document, path, RANKS_##kind, flags },
#include "ranks_columns.def"
#undef COLUMN
};
#define ALL (sizeof(all_columns) / sizeof(all_columns[0]))

/* The columns of a command, which are adjacent in the table. */
static const struct ranks_column *columns_of(const char *command, size_t *count)
{
	const struct ranks_column *first = NULL;

	*count = 0;
	for (size_t i = 0; i < ALL; i++) {
		if (strcmp(all_columns[i].command, command))
			continue;
		first = first ? first : &all_columns[i];
		++*count;
	}
	return first;
}

void ranks_table_init(struct ranks_table *t, const struct ranks_run *run, const char *command)
{
	*t = (struct ranks_table){ .run = run, .main = -1 };
	t->columns = columns_of(command, &t->count);
	t->rows = need_new((run->count + 1) * sizeof(*t->rows));
	for (size_t i = 0; i < run->count; i++) {
		t->rows[i].file = &run->items[i];
		t->rows[i].part = run->items[i].a_part;
	}
	for (size_t c = 0; c < t->count; c++) {
		if (t->columns[c].flags & RANKS_MAIN)
			t->main = (int)c;
		t->classes |= t->columns[c].kind == RANKS_CLASS;
	}
}

static void free_row(const struct ranks_table *t, struct ranks_row *row)
{
	for (size_t c = 0; row->values && c < t->count; c++)
		free(row->values[c].words);
	free(row->values);
	free(row->lines);
	free(row->devices);
	free(row->error);
}

void ranks_table_free(struct ranks_table *t)
{
	for (size_t i = 0; i < t->run->count; i++)
		free_row(t, &t->rows[i]);
	for (size_t i = 0; i < t->place_count; i++) {
		free((char *)t->places[i].function);
		free((char *)t->places[i].file);
	}
	free(t->places);
	free(t->rows);
	map_free(&t->place_ids);
}

void ranks_documents(const struct ranks_result *r, struct json out[2])
{
	const char *end = r->text + r->len;

	out[0] = json_text(r->text, r->len);
	out[1] = (struct json){ 0 };
	if (out[0].s)
		out[1] = json_text(out[0].end, (size_t)(end - out[0].end));
}

/* "devices.*.ooms" is a sum, "last_ns - first_ns" a difference, a list counts its items. */
static double number_at(struct json doc, const char *path, bool *known)
{
	const char *every = strstr(path, ".*."), *minus = strstr(path, " - ");
	char head[64];
	struct json v;
	double sum = 0;

	if (!every && !minus) {
		v = json_at(doc, path);
		*known = v.s && strncmp(v.s, "null", 4);
		return v.s && *v.s == '[' ? (double)json_count(v) : json_number(v);
	}
	snprintf(head, sizeof(head), "%.*s", (int)((every ? every : minus) - path), path);
	v = json_at(doc, head);
	*known = v.s;
	if (minus)
		return (double)(json_signed(v) - json_signed(json_at(doc, minus + 3)));
	for (struct json x = json_first(v, NULL); x.s; x = json_next(v, x, NULL))
		sum += json_number(json_at(x, every + 3));
	return sum;
}

static uint32_t place_id(struct ranks_table *t, struct json v)
{
	char function[512], file[1024];
	unsigned line = (unsigned)json_unsigned(json_member(v, "line"));
	uint32_t id;

	json_string(json_member(v, "function"), function, sizeof(function));
	json_string(json_member(v, "file"), file, sizeof(file));
	id = map_number(&t->place_ids, map_hash_text(map_hash_text(line, function), file),
			t->place_count);
	if (id < t->place_count)
		return id;
	*need_item(t->places, t->place_count, t->place_room) = (struct owner){
		.function = need_text(function), .file = need_text(file), .line = line
	};
	return id;
}

static int category_at(struct json name)
{
	char word[64];

	return category_by_name(json_string(name, word, sizeof(word)));
}

static void read_classes(struct ranks_row *row, struct json object)
{
	struct json key;

	for (struct json v = json_first(object, &key); v.s; v = json_next(object, v, &key)) {
		int category = category_at(key);

		if (category >= 0)
			row->classes[category] = json_unsigned(v);
	}
}

static void read_lines(struct ranks_table *t, struct ranks_row *row, struct json lines)
{
	for (struct json v = json_first(lines, NULL); v.s; v = json_next(lines, v, NULL)) {
		int category = category_at(json_member(v, "class"));

		if (category < 0)
			continue;
		*need_item(row->lines, row->line_count, row->line_room) =
			(struct ranks_line){ place_id(t, v), (uint32_t)category,
					     json_unsigned(json_member(v, "bytes")) };
	}
}

static void read_devices(struct ranks_table *t, struct ranks_row *row, struct json devices)
{
	for (struct json v = json_first(devices, NULL); v.s; v = json_next(devices, v, NULL)) {
		struct ranks_device *d =
			need_item(row->devices, row->device_count, row->device_room);

		*d = (struct ranks_device){
			.number = (int)json_signed(json_member(v, "device")),
			.peak = json_unsigned(json_member(v, "peak_bytes")),
			.reserved = json_unsigned(json_member(v, "peak_reserved_bytes")),
			.context = json_unsigned(json_member(v, "context_bytes")),
			.place = place_id(t, v),
		};
		d->reserved = d->reserved > d->peak ? d->reserved : d->peak;
		json_string(json_member(v, "uuid"), d->uuid, sizeof(d->uuid));
	}
}

static char *largest_class(const struct ranks_row *row)
{
	unsigned order[CATEGORIES];
	char text[96] = "";

	if (classes_by_bytes(row->classes, order))
		snprintf(text, sizeof(text), "%s %s", categories[*order].words,
			 B(row->classes[*order]));
	return need_text(text);
}

static void read_value(struct ranks_table *t, struct ranks_value *v, const struct ranks_column *c,
		       struct ranks_row *row, struct json doc)
{
	char text[OWNER_WORDS];
	struct json at;
	uint32_t place;
	int category;

	switch (c->kind) {
	case RANKS_WORDS:
		v->words = need_text(json_string(json_at(doc, c->path), text, sizeof(text)));
		break;
	case RANKS_CATEGORY:
		category = category_at(json_at(doc, c->path));
		v->words = need_text(category < 0 ? "" : categories[category].words);
		break;
	case RANKS_PLACE:
		at = json_at(doc, c->path);
		place = at.s ? place_id(t, at) : 0; /* the places may move */
		v->words = need_text(at.s ? owner_words(&t->places[place], text, sizeof(text), 44)
					  : "");
		break;
	case RANKS_CLASS:
		read_classes(row, json_at(doc, c->path));
		v->words = largest_class(row);
		break;
	default:
		v->n = number_at(doc, c->path, &v->known);
		return;
	}
	v->known = v->words[0];
}

void ranks_table_add(struct ranks_table *t, size_t i, const struct ranks_result *r)
{
	struct ranks_row *row = &t->rows[i];
	struct json documents[2];

	ranks_documents(r, documents);
	row->rc = r->rc;
	row->part |= r->a_part;
	row->fine = documents[0].s;
	if (!row->fine) {
		row->error = need_text(r->error[0] ? r->error : "nothing was found");
		return;
	}
	row->values = need_new((t->count + 1) * sizeof(*row->values));
	for (size_t c = 0; c < t->count; c++)
		read_value(t, &row->values[c], &t->columns[c], row,
			   documents[t->columns[c].document]);
	if (t->classes)
		read_lines(t, row, json_member(documents[documents[1].s ? 1 : 0], "lines"));
	if (!strcmp(t->columns[0].command, "report")) {
		read_devices(t, row, json_member(documents[0], "devices"));
		read_devices(t, row, json_member(documents[0], "contexts"));
	}
}

static bool is_of(const struct ranks_sums *s, size_t i)
{
	const struct ranks_row *row = &s->table->rows[i];

	return row->fine && (!s->host || !strcmp(row->file->host, s->host));
}

double ranks_sum(const struct ranks_sums *s, size_t column)
{
	double all = 0;

	for (size_t i = 0; i < s->table->run->count; i++)
		if (is_of(s, i))
			all += s->table->rows[i].values[column].n;
	return all;
}

size_t ranks_fine(const struct ranks_sums *s)
{
	size_t n = 0;

	for (size_t i = 0; i < s->table->run->count; i++)
		n += is_of(s, i);
	return n;
}

bool ranks_new_host(const struct ranks_run *run, size_t i)
{
	for (size_t k = 0; k < i; k++)
		if (!strcmp(run->items[k].host, run->items[i].host))
			return false;
	return run->items[i].host[0];
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "parts.h"

#include <stdio.h>
#include <string.h>

#include "../classes/classify.h"
#include "../stacks/demangle.h"

void emit_by_class(struct emit *out, const char *key, const uint64_t *bytes)
{
	emit_object(out, key);
	for (unsigned c = 0; c < CATEGORIES; c++)
		if (bytes[c])
			emit_number(out, category_name(c), bytes[c]);
	emit_end(out);
}

void emit_owner(struct emit *out, const struct owner *o)
{
	emit_text(out, "function", o->function);
	emit_text(out, "file", o->file);
	emit_number(out, "line", o->line);
}

const char *owner_words(const struct owner *o, char *buf, size_t room)
{
	char where[64] = "";
	const char *name = o->function[0] ? o->function : "(no stack)";
	char brief[256];
	bool fits;
	int left;

	if (strstr(name, "::"))
		name = demangle_brief(name, brief, sizeof(brief));
	if (o->backward)
		snprintf(where, sizeof(where), " (backward)");
	else if (o->file[0] && o->line)
		snprintf(where, sizeof(where), " %.40s:%u", owners_base(o->file), o->line);
	else if (o->file[0])
		snprintf(where, sizeof(where), " %.40s", owners_base(o->file));
	left = (int)room - 1 - (int)strlen(where);
	left = left < 8 ? 8 : left;
	fits = (int)strlen(name) <= left;
	if (snprintf(buf, room, "%.*s%s%s", fits ? left : left - 2, name, fits ? "" : "..", where) <
	    0)
		return "";
	return buf;
}

const char *owner_words_within(const struct owner *o, char *buf, size_t room, size_t columns)
{
	owner_words(o, buf, room);
	if (strlen(buf) > columns && o->file[0])
		snprintf(buf, room, "%s:%u", owners_base(o->file), o->line);
	if (strlen(buf) > columns)
		owner_words(o, buf, columns + 1);
	return buf;
}

static struct defs_text device_fact(const struct defs *d, int device, const char *what)
{
	char key[64];

	snprintf(key, sizeof(key), "device.%d.%s", device, what);
	return defs_meta(d, key);
}

const char *device_words(const struct defs *d, int device, char *buf, size_t room)
{
	static const char begin[] = "73696d75-6c61-"; /* a simulated one's UUID: "simula" */
	struct defs_text name = device_fact(d, device, "name");
	struct defs_text uuid = device_fact(d, device, "uuid");
	struct defs_text card = defs_meta(d, "env.SIMGPU_CARD");
	bool simulated = !strncmp(uuid.s, begin, sizeof(begin) - 1);

	snprintf(buf, room, "%s%.50s", simulated ? "simulated " : "",
		 simulated && card.len ? card.s : name.s);
	return buf;
}

void emit_left_out(struct emit *out, const char *indent, size_t count)
{
	if (count)
		emit_line(out, "%s... and %zu smaller one%s (--top 0 shows all)", indent, count,
			  count == 1 ? "" : "s");
}

void emit_paragraph(struct emit *out, const char *first, const char *next, const char *text)
{
	const char *lead = first;

	while (*text) {
		size_t room = PARAGRAPH - strlen(lead), len = strlen(text);

		if (len > room) {
			for (len = room; len && text[len] != ' '; len--)
				;
			len = len ? len : room;
		}
		emit_line(out, "%s%.*s", lead, (int)len, text);
		text += len;
		while (*text == ' ')
			text++;
		lead = next;
	}
}

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

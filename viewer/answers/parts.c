/* SPDX-License-Identifier: Apache-2.0 */
#include "parts.h"

#include <stdio.h>
#include <string.h>

#include "../classes/classify.h"

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

static struct defs_text device_fact(const struct defs *d, int device, const char *what)
{
	char key[64];

	snprintf(key, sizeof(key), "device.%d.%s", device, what);
	return defs_meta(d, key);
}

bool device_is_simulated(const struct defs *d, int device)
{
	static const char begin[] = "73696d75-6c61-"; /* a simulated one's UUID: "simula" */

	return !strncmp(device_fact(d, device, "uuid").s, begin, sizeof(begin) - 1);
}

const char *device_words(const struct defs *d, int device, char *buf, size_t room)
{
	struct defs_text name = device_fact(d, device, "name");
	struct defs_text card = defs_meta(d, "env.SIMGPU_CARD");
	bool simulated = device_is_simulated(d, device);

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
			len = len ? len : strcspn(text, " ");
		}
		emit_line(out, "%s%.*s", lead, (int)len, text);
		text += len;
		while (*text == ' ')
			text++;
		lead = next;
	}
}

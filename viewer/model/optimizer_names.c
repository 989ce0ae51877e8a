/* SPDX-License-Identifier: Apache-2.0 */
#include "optimizer_names.h"

#include <stdio.h>
#include <string.h>

const char *optimizer_name(const char *of, char buf[OPTIMIZER_NAME])
{
	const char *hash = strchr(of, '#'), *name = hash ? hash + 1 : of, *dot = strrchr(name, '.');

	snprintf(buf, OPTIMIZER_NAME, "%.*s", dot ? (int)(dot - name) : 0, name);
	return buf;
}

const char *optimizer_of_spans(const struct spans *s, size_t last, const struct defs *defs,
			       char buf[OPTIMIZER_NAME])
{
	buf[0] = 0;
	for (size_t i = last < s->count ? last + 1 : s->count; i-- > 0 && !buf[0];) {
		const char *text = defs_string(defs, s->items[i].name).s;

		if (s->items[i].phase == PHASE_OPTIMIZER && strchr(text, '#'))
			optimizer_name(text, buf);
	}
	return buf;
}

const char *optimizers_of_spans(const struct spans *s, const struct defs *defs, char *buf,
				size_t room)
{
	uint32_t seen[OPTIMIZERS];
	char name[OPTIMIZER_NAME];
	size_t count = 0, n = 0, known;

	buf[0] = 0;
	for (size_t i = 0; i < s->count && count < OPTIMIZERS && n < room; i++) {
		const struct span *x = &s->items[i];
		const char *text = defs_string(defs, x->name).s;

		for (known = 0; known < count && seen[known] != x->name; known++)
			;
		if (x->phase != PHASE_OPTIMIZER || known < count || !strchr(text, '#'))
			continue;
		seen[count++] = x->name;
		n += (size_t)snprintf(buf + n, room - n, "%s%s", n ? ", " : "",
				      optimizer_name(text, name));
	}
	return buf;
}

int optimizer_tensors(const char *name)
{
	static const struct {
		const char *part;
		int tensors;
	} known[] = { { "8bit", -1 },	{ "Adamax", 2 },  { "Adam", 2 }, { "Adadelta", 2 },
		      { "Adagrad", 1 }, { "RMSprop", 1 }, { "Lion", 1 }, { "SGD", 1 } };

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (strstr(name, known[i].part))
			return known[i].tensors;
	return -1;
}

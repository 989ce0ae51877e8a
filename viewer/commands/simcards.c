/* SPDX-License-Identifier: Apache-2.0 */
#include "simcards.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../base/need.h"
#include "../base/say.h"
#include "preload.h"

#define TEXT 8192

typedef int said(const char *spec, char *text, size_t room);

static int add_card(said *cards_of, const char *spec, struct card **cards, size_t *count)
{
	char text[TEXT], *line = text;
	size_t room = *count;
	int n = cards_of(spec, text, sizeof(text));

	for (; n > 0; n--, line = strchr(line, '\n') + 1) {
		struct card c = { .memory = 0 };
		unsigned long long memory, context;

		if (sscanf(line, "%95s %d.%d %d %d %llu %llu", c.name, &c.major, &c.minor, &c.code,
			   &c.processors, &memory, &context) != 7)
			return 0;
		if (spec)
			snprintf(c.name, sizeof(c.name), "%s", spec);
		c.memory = memory;
		c.context = context;
		*need_item(*cards, *count, room) = c;
	}
	return 1;
}

static int unknown_card(said *cards_of, const char *spec)
{
	char text[TEXT], known[1024] = "";
	size_t n = 0;
	int lines = cards_of(NULL, text, sizeof(text));

	for (char *line = text; lines > 0; lines--, line = strchr(line, '\n') + 1)
		n += (size_t)snprintf(known + n, sizeof(known) - n, "%.*s, ",
				      (int)strcspn(line, " "), line);
	return say_error(EXIT_USAGE,
			 "unknown card \"%s\"; known are %sor NAME=SIZE such as "
			 "mycard=24GiB",
			 spec, known);
}

int simcards_find(const char *names, struct card **cards, size_t *count)
{
	char spec[96];
	void *device = preload_simulator();
	said *cards_of = device ? (said *)dlsym(device, "simgpuCards") : NULL;
	int rc = 0;

	*cards = NULL;
	*count = 0;
	if (!cards_of)
		return say_error(EXIT_UNREADABLE,
				 "libsimgpu.so was not found beside this program or in ../lib: "
				 "install gpumemtrace again (a build with SIMGPU=no has no "
				 "simulated device)");
	if (!names || !strcmp(names, "all"))
		return add_card(cards_of, NULL, cards, count) ? 0 : EXIT_UNREADABLE;
	while (!rc && *names) {
		size_t len = strcspn(names, ",");
		size_t before = *count;

		snprintf(spec, sizeof(spec), "%.*s", (int)len, names);
		if (len >= sizeof(spec) || !len)
			return say_error(EXIT_USAGE, "--cards %s: give names with a comma between",
					 names);
		add_card(cards_of, spec, cards, count);
		if (*count == before)
			rc = unknown_card(cards_of, spec);
		for (size_t i = 0; !rc && i + 1 < *count; i++)
			if (!strcmp((*cards)[i].name, spec))
				rc = say_error(EXIT_USAGE, "--cards: %s is named twice", spec);
		names += len + (names[len] == ',');
	}
	return rc;
}

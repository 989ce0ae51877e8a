/* SPDX-License-Identifier: Apache-2.0 */
#include "world.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../base/say.h"

#define NODE	   8 /* devices of a node, if LOCAL_WORLD_SIZE does not say */
#define MOST_NODE  16
#define FORM_WORDS "--ranks takes a number, or one with the ranks to run: 512, 512:0,64,511"

static bool read_number(const char **text, long most, long *out)
{
	char *end;

	errno = 0;
	*out = strtol(*text, &end, 10);
	if (end == *text || errno || **text < '0' || **text > '9' || *out > most)
		return false;
	*text = end;
	return true;
}

static void world_add_rank(struct world *w, long rank)
{
	size_t at = 0;

	while (at < w->count && w->ranks[at] < rank)
		at++;
	if (at < w->count && w->ranks[at] == rank)
		return;
	memmove(w->ranks + at + 1, w->ranks + at, (w->count - at) * sizeof(*w->ranks));
	w->ranks[at] = rank;
	w->count++;
}

static int read_list(struct world *w, const char *text)
{
	long rank;

	do {
		text++;
		if (w->count == WORLD_RUN)
			return say_error(EXIT_USAGE, "--ranks runs at most %d ranks of a world",
					 WORLD_RUN);
		if (!read_number(&text, w->size - 1, &rank) || (*text && *text != ','))
			return say_error(EXIT_USAGE, FORM_WORDS "; the ranks of %ld are 0 to %ld",
					 w->size, w->size - 1);
		world_add_rank(w, rank);
	} while (*text == ',');
	return 0;
}

int world_parse(struct world *w, const char *text)
{
	const char *local = getenv("LOCAL_WORLD_SIZE");
	int rc = 0;

	*w = (struct world){ 0 };
	if (!text)
		return 0;
	if (!read_number(&text, WORLD_MOST, &w->size) || w->size < 1 || (*text && *text != ':'))
		return say_error(EXIT_USAGE, FORM_WORDS "; at most %d", WORLD_MOST);
	w->node = local ? atol(local) : NODE;
	if (w->node < 1 || w->node > MOST_NODE)
		return say_error(EXIT_USAGE, "LOCAL_WORLD_SIZE is %s: a node has 1 to %d devices",
				 local, MOST_NODE);
	w->node = w->node < w->size ? w->node : w->size;
	if (*text) {
		rc = read_list(w, text);
	} else if (w->size > WORLD_HERE) {
		world_add_rank(w, 0);
		world_add_rank(w, w->size / 2);
		world_add_rank(w, w->size - 1);
	}
	return rc;
}

void world_set(const char *name, long n)
{
	char text[24];

	snprintf(text, sizeof(text), "%ld", n);
	setenv(name, text, 1);
}

void world_set_rank(long rank, long size, long node, int port)
{
	world_set("RANK", rank);
	world_set("LOCAL_RANK", rank % node);
	world_set("WORLD_SIZE", size);
	world_set("LOCAL_WORLD_SIZE", node);
	setenv("MASTER_ADDR", "127.0.0.1", 1);
	world_set("MASTER_PORT", port);
}

/* The store belongs to the launcher, so that rank 0 is a client of it as all others are. */
void world_environment(const struct world *w, size_t i, int port, const char *messages)
{
	long rank = w->ranks[i];
	char text[PATH_MAX + 256];
	size_t n = 0;

	world_set_rank(rank, w->size, w->node, port);
	world_set("ROLE_RANK", rank);
	world_set("ROLE_WORLD_SIZE", w->size);
	world_set("GROUP_RANK", rank / w->node);
	world_set("GROUP_WORLD_SIZE", (w->size + w->node - 1) / w->node);
	setenv("ROLE_NAME", "default", 1);
	setenv("TORCHELASTIC_USE_AGENT_STORE", "True", 1);
	setenv("TORCHELASTIC_RESTART_COUNT", "0", 1);
	setenv("TORCHELASTIC_MAX_RESTARTS", "0", 1);
	setenv("TORCHELASTIC_RUN_ID", "none", 1);
	setenv("TORCH_GLOO_LAZY_INIT", "1", 1); /* a group of gloo connects when it is used */
	setenv("GLOO_SOCKET_IFNAME", "lo", 1);
	setenv("SIMGPU_RANKS", "alone", 1);
	for (size_t k = 0; k < w->count; k++)
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%ld", k ? "," : "",
				      w->ranks[k]);
	snprintf(text + n, sizeof(text) - n, ":%s", messages);
	setenv("SIMGPU_WORLD", text, 1);
}

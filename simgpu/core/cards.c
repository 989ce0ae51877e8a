/* SPDX-License-Identifier: Apache-2.0
 *
 * The simulated card: SIMGPU_CARD names a row of cards.def, or NAME=SIZE makes a Hopper-like card
 * with that memory. SIMGPU_TAKEN=SIZE is memory that other programs use: the card's size is
 * unchanged, but that much is never free, and no process here owns it. SIMGPU_CONTEXT is the size
 * of a context. Read once, at the first use, on the calling thread.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "devices.h"

#define MIB ((size_t)1 << 20)
#define CARD(name, model, major, minor, code, sms, threads, blocks, shared, optin, l2, memory,   \
	     context, least, most, clock, mclock, bus, bandwidth, f64, f32, tf32, f16, f8, host, \
	     card)                                                                               \
	{ name,                                                                                  \
	  model,                                                                                 \
	  major,                                                                                 \
	  minor,                                                                                 \
	  code,                                                                                  \
	  sms,                                                                                   \
	  threads,                                                                               \
	  blocks,                                                                                \
	  (size_t)(shared) << 10,                                                                \
	  (size_t)(optin) << 10,                                                                 \
	  (size_t)((l2)*MIB),                                                                    \
	  (memory)*MIB,                                                                          \
	  (context)*MIB,                                                                         \
	  (least)*MIB,                                                                           \
	  (most)*MIB,                                                                            \
	  false,                                                                                 \
	  (clock)*1000,                                                                          \
	  (mclock)*1000,                                                                         \
	  bus,                                                                                   \
	  { bandwidth, f64, f32, tf32, f16, f8, host, card },                                    \
	  0,                                                                                     \
	  false },

static const struct sim_card cards[] = {
#include "cards.def"
};

/* A row whose columns contradict each other does not build. */
#undef CARD
#define CARD(name, model, major, minor, code, sms, threads, blocks, shared, optin, l2, memory, \
	     context, least, most, ...)                                                        \
	_Static_assert((least) <= (most), name ": the least context is larger than the most"); \
	_Static_assert((least) <= (context) && (context) <= (most),                            \
		       name ": the context is not between its least and its most");            \
	_Static_assert((most) < (memory), name ": a context takes all memory");                \
	_Static_assert((optin) <= (shared), name ": a block has more shared memory than an SM");
#include "cards.def"

#define CARDS	     (sizeof(cards) / sizeof(cards[0]))
#define DEFAULT_NAME "h100-80g"

static struct sim_card chosen;
static char chosen_name[64];
static bool known;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static const struct sim_card *find_card(const char *name)
{
	for (size_t i = 0; i < CARDS; i++)
		if (!strcmp(cards[i].name, name))
			return &cards[i];
	return NULL;
}

/* "24GiB", "24G", "24576MiB", "24GB", or plain bytes; 0 if it is none of these. */
static size_t parse_size(const char *s)
{
	static const struct {
		const char *unit;
		double bytes;
	} units[] = {
		{ "", 1 },
		{ "B", 1 },
		{ "KiB", 1024 },
		{ "K", 1024 },
		{ "MiB", 1 << 20 },
		{ "M", 1 << 20 },
		{ "GiB", 1 << 30 },
		{ "G", 1 << 30 },
		{ "MB", 1e6 },
		{ "GB", 1e9 },
		{ "TiB", 1099511627776. },
		{ "T", 1099511627776. },
		{ "TB", 1e12 },
	};
	char *end;
	double n = strtod(s, &end);

	if (end == s || !(n > 0))
		return 0;
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		if (!strcasecmp(end, units[i].unit))
			return n * units[i].bytes < 4e12 ? (size_t)(n * units[i].bytes) : 0;
	return 0;
}

/* A user-defined card: NAME=SIZE. NAME may be a known card, which is then resized. */
static bool own_card(const char *spec, struct sim_card *card)
{
	const char *eq = strchr(spec, '=');
	size_t bytes = eq ? parse_size(eq + 1) : 0;
	const struct sim_card *base;

	if (!eq || eq == spec || (size_t)(eq - spec) >= sizeof(chosen_name) ||
	    bytes < 16 * SIM_PAGE)
		return false;
	memcpy(chosen_name, spec, eq - spec);
	chosen_name[eq - spec] = 0;
	base = find_card(chosen_name);
	*card = base ? *base : *find_card(DEFAULT_NAME);
	if (!base)
		card->model = chosen_name;
	card->name = chosen_name;
	card->memory = bytes;
	card->small = card->context_whole = card->context > bytes / 8;
	if (card->small) /* smaller than any real card: no range is known */
		card->context = card->context_least = card->context_most =
			bytes / 8 & ~(SIM_PAGE - 1);
	return true;
}

bool card_find(const char *spec, size_t i, struct sim_card *out)
{
	const struct sim_card *card = spec ? find_card(spec) : i < CARDS ? &cards[i] : NULL;

	if (spec && i)
		return false;
	if (card)
		*out = *card;
	return card || (spec && own_card(spec, out));
}

static void complain(const char *name)
{
	char text[1024];

	if (card_unknown("SIMGPU_CARD", name, text, sizeof(text)))
		fprintf(stderr, "simgpu: %s\n", text);
}

/* false: the size cannot be parsed, or exceeds the memory. */
static bool set_taken(const char *size)
{
	if (!size || !*size)
		return true;
	chosen.taken = parse_size(size);
	if (chosen.taken && chosen.taken <= chosen.memory - chosen.context)
		return true;
	fprintf(stderr, "simgpu: SIMGPU_TAKEN=%s: give a size that the card has, such as 20GiB\n",
		size);
	return false;
}

/* Sets the size of a context, which is known only within a range: "least", "most", or a size. */
static bool set_context(const char *what)
{
	size_t bytes;

	if (!what || !*what)
		return true;
	bytes = !strcmp(what, "least")	? chosen.context_least
		: !strcmp(what, "most") ? chosen.context_most
					: parse_size(what);
	if (bytes && bytes < chosen.memory - chosen.taken) {
		chosen.context = bytes & ~(SIM_PAGE - 1);
		chosen.context_whole = true;
		return true;
	}
	fprintf(stderr, "simgpu: SIMGPU_CONTEXT=%s: give least, most or a size such as 300MiB\n",
		what);
	return false;
}

static void choose(void)
{
	const char *name = getenv("SIMGPU_CARD");
	const struct sim_card *card;

	if (!name || !*name)
		name = DEFAULT_NAME;
	card = find_card(name);
	known = true;
	if (card)
		chosen = *card;
	else if (!own_card(name, &chosen)) {
		complain(name);
		chosen = *find_card(DEFAULT_NAME);
		known = false;
	}
	known = set_taken(getenv("SIMGPU_TAKEN")) && known;
	known = set_context(getenv("SIMGPU_CONTEXT")) && known;
}

const struct sim_card *sim_card(void)
{
	pthread_once(&once, choose);
	return &chosen;
}

bool card_known(void)
{
	pthread_once(&once, choose);
	return known;
}

/* The driver refuses peer access between GeForce cards. */
bool card_has_peers(void)
{
	return !strstr(sim_card()->model, "GeForce");
}

/* Data centre cards have NVLink, the others do not. */
bool card_has_nvlink(void)
{
	int capability = sim_card()->major * 10 + sim_card()->minor;

	return capability == 70 || capability == 80 || capability == 90 || sim_card()->major == 10;
}

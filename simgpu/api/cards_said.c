/* SPDX-License-Identifier: Apache-2.0
 *
 * Queries of the table of cards, for tools that do not use a device. They open none. Any thread.
 */
#include <stdio.h>
#include "../core/devices.h"

int simgpuCards(const char *spec, char *text, size_t room);
int simgpuCardUnknown(const char *by, const char *spec, char *text, size_t room);

/* Writes the card that SIMGPU_CARD would name (NULL: every card of the table, one per line) to
 * `text`: name, compute capability, code version, multiprocessors, bytes of memory, bytes of a
 * context. Returns the number of lines; 0 = unknown card. */
SIM_API int simgpuCards(const char *spec, char *text, size_t room)
{
	struct sim_card card;
	size_t used = 0;
	int lines = 0;

	text[0] = 0;
	while (used < room && card_find(spec, (size_t)lines, &card)) {
		used += (size_t)snprintf(text + used, room - used, "%s %d.%d %d %d %zu %zu\n",
					 card.name, card.major, card.minor, card.code_version,
					 card.sms, card.memory, card.context);
		lines++;
	}
	return lines;
}

/* 1: no such card; `text` is the error message, which begins with the option `by`. 0: known. */
SIM_API int simgpuCardUnknown(const char *by, const char *spec, char *text, size_t room)
{
	return card_unknown(by, spec, text, room);
}

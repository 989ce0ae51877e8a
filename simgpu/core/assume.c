/* SPDX-License-Identifier: Apache-2.0
 *
 * Values assumed where a kernel was not computed but the kind of its result is known. A choice
 * (topk, argmax, a sample) falls equally often on each candidate, as in a trained router. A mask is
 * true throughout. A small count keeps its value through an unknown kernel. Sizes and progress of
 * programs follow from such values, and with zeros they would be too small. SIMGPU_ASSUME=zero
 * assumes nothing. Any thread.
 */
#include <stdlib.h>
#include <string.h>
#include "contents.h"

bool assumes_anything(void)
{
	static int does = -1;
	const char *text;

	if (does < 0) {
		text = getenv("SIMGPU_ASSUME");
		does = !text || strcmp(text, "zero") != 0;
	}
	return does;
}

bool assumes(enum contents_state what)
{
	if (assumes_anything())
		contents_assume(what);
	return assumes_anything();
}

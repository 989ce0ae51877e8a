/* SPDX-License-Identifier: Apache-2.0 */
#include "lake_views.h"

#include <ctype.h>
#include <string.h>

#include "../base/asset.h"

ASSET_FILE(views, "viewer/handover/views.sql");

#define VIEW "\n-- view "

bool lake_view(size_t i, struct lake_view *v)
{
	const char *at = asset_views, *end = asset_end_views, *colon, *line, *next;

	do {
		at = memmem(at, (size_t)(end - at), VIEW, strlen(VIEW));
		if (!at)
			return false;
		at += strlen(VIEW);
	} while (i--);
	colon = memchr(at, ':', (size_t)(end - at));
	line = memchr(at, '\n', (size_t)(end - at));
	next = memmem(at, (size_t)(end - at), VIEW, strlen(VIEW));
	next = next ? next : end;
	if (!colon || !line || colon > line)
		return false;
	snprintf(v->name, sizeof(v->name), "%.*s", (int)(colon - at), at);
	v->meaning = (struct defs_text){ colon + 2, (size_t)(line - colon - 2) };
	while (next > line && isspace((unsigned char)next[-1]))
		next--;
	v->sql = (struct defs_text){ line + 1, (size_t)(next - line - 1) };
	return true;
}

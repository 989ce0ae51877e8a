/* SPDX-License-Identifier: Apache-2.0 */
#include "amount.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

bool amount_parse(const char *text, struct amount *a)
{
	static const struct {
		const char *name;
		double bytes;
	} units[] = { { "", 1 },
		      { "B", 1 },
		      { "KiB", 1024 },
		      { "MiB", 1048576 },
		      { "GiB", 1073741824 },
		      { "TiB", 1099511627776 },
		      { "KB", 1e3 },
		      { "MB", 1e6 },
		      { "GB", 1e9 },
		      { "TB", 1e12 } };
	char *end;

	errno = 0;
	a->value = strtod(text, &end);
	if (errno || end == text || !(a->value >= 0) || !isfinite(a->value))
		return false;
	end += strspn(end, " ");
	a->percent = !strcmp(end, "%");
	if (a->percent)
		return true;
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		if (!strcasecmp(end, units[i].name)) {
			a->value *= units[i].bytes;
			return a->value < 1e18;
		}
	return false;
}

uint64_t amount_bytes(const struct amount *a, uint64_t all)
{
	return (uint64_t)(a->percent ? a->value / 100 * (double)all : a->value);
}

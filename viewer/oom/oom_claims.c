/* SPDX-License-Identifier: Apache-2.0 */
/* How often each kind of claim was right where the rest of a run shows it: see docs/conclusions.md.
 */

#include "oom.h"

static const struct oom_claim claims[] = {
#include "claims.def"
	{ "", 0, 0 },
};

struct oom_claim oom_claim(const char *name)
{
	for (size_t i = 0; i < sizeof(claims) / sizeof(*claims); i++)
		if (!strcmp(claims[i].name, name))
			return claims[i];
	return (struct oom_claim){ .name = name };
}

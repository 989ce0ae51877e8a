/* SPDX-License-Identifier: Apache-2.0 */
#include "optimizers.h"

#include <string.h>

#include "../base/bytes.h"
#include "../stacks/owners.h"

static uint64_t mix(uint64_t hash, const char *s, unsigned line)
{
	return bytes_hash(bytes_hash(hash, s, strlen(s)), &line, sizeof(line));
}

uint32_t optimizers_caller(struct stacks *stacks, uint32_t stack)
{
	uint64_t hash = BYTES_HASH;

	stacks_read_python(stacks, stack);
	for (size_t i = 0; i < stacks->count; i++) {
		const struct frame *f = &stacks->frames[i];

		if (strstr(f->function, "profile_hook_step"))
			hash = BYTES_HASH; /* an optimizer's own lines do not tell who called it */
		if (!owners_is_plumbing(f->file))
			hash = mix(mix(hash, f->file, 0), f->function, f->line);
	}
	return hash == BYTES_HASH ? 0 : (uint32_t)(hash >> 32 ^ hash) | 1;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The rank of this process, from environment variables: PyTorch's first, then those of launchers.
 * The library and the command both take %r of a recording's name from here. */
#pragma once

#include <stdlib.h>
#include <string.h>

#define GMT_RANK_NAMES(NAME)         \
	NAME("RANK")                 \
	NAME("OMPI_COMM_WORLD_RANK") \
	NAME("PMI_RANK") NAME("PMIX_RANK") NAME("SLURM_PROCID") NAME("LOCAL_RANK")

/* The rank as text, from the environment; NULL if no variable gives it. */
static inline const char *gmt_rank(void)
{
#define GMT_RANK_NAME(name) name,
	static const char *const names[] = { GMT_RANK_NAMES(GMT_RANK_NAME) };
#undef GMT_RANK_NAME

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const char *value = getenv(names[i]);

		if (value && *value && strlen(value) < 16 && !strchr(value, '/'))
			return value;
	}
	return NULL;
}

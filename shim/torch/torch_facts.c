/* SPDX-License-Identifier: Apache-2.0 */
/* Facts about the running PyTorch: its release, and which data about its tensors are recorded. */
#include "torch.h"

#include "../base/config.h"

#include <stdio.h>
#include <string.h>

static void fact(const char *key, const char *value)
{
	gmt_meta(key, value, strlen(value));
}

static void unverified(const char *key, const struct torch_release *release)
{
	char text[160];

	snprintf(text, sizeof(text), "off: torch %.64s is not in the table of verified versions",
		 release->version[0] ? release->version : "(unknown)");
	fact(key, text);
}

static void state(const struct torch_release *release, bool verified)
{
	if (release->version[0])
		fact("torch.version", release->version);
	if (release->cuda[0])
		fact("torch.cuda", release->cuda);
	if (!gmt_config.tags)
		fact("torch.tags", "off: GPUMEMTRACE_TAGS");
	else if (verified)
		fact("torch.tags", "on");
	else
		unverified("torch.tags", release);
	if (gmt_config.tags && verified && torch_sizes())
		fact("torch.sizes", "on");
	variables_read_by(gmt_config.tags && verified ? torch_read_object : NULL);
	if (torch_graphs())
		fact("torch.graphs", "on");
	if (gmt_config.tags && torch_pools())
		fact("torch.pools", "on");
	if (verified)
		torch_ranges_start();
	else
		unverified("torch.ranges", release);
}

static void torch_start(void)
{
	static uint32_t generation; /* whose file has these facts */
	const struct torch_release *release = torch_release();

	if (release && generation != gmt_generation()) {
		generation = gmt_generation();
		state(release, torch_layout() != NULL);
	}
}

GMT_SOURCE(torch, torch_start, NULL, NULL);

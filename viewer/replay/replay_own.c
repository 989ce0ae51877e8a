/* SPDX-License-Identifier: Apache-2.0 */
#include "replay_own.h"

#include <stdio.h>
#include <stdlib.h>

#include "../base/need.h"

void replay_own(struct replay_own *own, const struct defs *defs)
{
	static const char *const keys[] = { "env.PYTORCH_ALLOC_CONF", "env.PYTORCH_CUDA_ALLOC_CONF",
					    "PYTORCH_CUDA_ALLOC_CONF" };
	struct defs_text text = { 0 }, version = defs_meta(defs, "torch.version");
	long major = 2, minor = 6;

	*own = (struct replay_own){ 0 };
	for (size_t i = 0; i < sizeof(keys) / sizeof(*keys) && !text.len; i++)
		text = defs_meta(defs, keys[i]);
	own->conf = text.len ? need_copy(text.s, text.len) : need_copy("default", 7);
	if (version.len && sscanf(version.s, "%ld.%ld", &major, &minor) == 2)
		own->release = (unsigned)(major * 100 + minor);
	if (settings_parse_as(&own->settings, text.len ? own->conf : "", own->release, own->why))
		settings_parse(&own->settings, "", (char[SETTINGS_WHY]){ 0 });
	else
		own->why[0] = 0;
	own->whole_pools = major > 2 || (major == 2 && minor >= 6);
}

void replay_own_free(struct replay_own *own)
{
	free(own->conf);
}

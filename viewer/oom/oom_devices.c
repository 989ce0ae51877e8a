/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The other devices of the process that ran out of memory. nn.DataParallel copies the model to each
 * before every pass and gathers all results on the first, which so holds far more than the others.
 */
#include "oom.h"

struct oom_devices oom_devices(const struct oom *o)
{
	struct oom_devices out = { .least = UINT64_MAX };

	for (int d = 0; d < MODEL_DEVICES; d++) {
		const struct model_device *device = &o->timeline->model.devices[d];
		uint64_t peak = model_curve(device)->peak.bytes;

		if (d == o->timeline->device || !device->seen || !peak)
			continue;
		out.count++;
		if (peak < out.least) {
			out.least = peak;
			out.lowest = d;
		}
		if (peak > out.most) {
			out.most = peak;
			out.highest = d;
		}
	}
	if (out.count)
		out.replicas =
			defs_has_file(o->timeline->stacks.defs, "torch/nn/parallel/replicate.py");
	return out;
}

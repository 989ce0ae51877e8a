/* SPDX-License-Identifier: Apache-2.0
 *
 * PyTorch's gradient scaler keeps its scale and the number of good steps on the device; programs
 * read the scale to see whether a step was skipped. No gradient overflows here, so both only grow.
 * Any thread.
 */
#include <math.h>
#include "kernels.h"

/* Arguments: addresses of the scale, the good steps and the overflow flag; then growth factor,
 * backoff factor, and the number of good steps after which the scale grows. */
bool scaler_launch(const struct call *c)
{
	void **args = c->args;
	float *const *scale = args[0], *const *overflow = args[2];
	int *const *steps = args[1];
	double factor = *(const double *)args[3];
	int interval = *(const int *)args[5], done = 0;
	float value = 0, bad = 0;

	sim_copy(&value, *scale, sizeof(value));
	sim_copy(&done, *steps, sizeof(done));
	sim_copy(&bad, *overflow, sizeof(bad));
	done = bad != 0 ? 0 : done + 1;
	if (bad != 0)
		value = (float)(value * *(const double *)args[4]);
	else if (done == interval && isfinite((float)(value * factor)))
		value = (float)(value * factor);
	if (done == interval)
		done = 0;
	sim_copy(*scale, &value, sizeof(value));
	sim_copy(*steps, &done, sizeof(done));
	return true;
}

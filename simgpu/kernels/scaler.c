/* SPDX-License-Identifier: Apache-2.0
 *
 * PyTorch's gradient scaler keeps its scale and the number of good steps on the device; programs
 * read the scale to see whether a step was left out. No gradient overflows here, so both only grow.
 * Any thread.
 */
#include <math.h>
#include "kernels.h"

/* args: where the scale is, the good steps, how many gradients overflowed; then growth and backoff
 * factors, and after how many steps it grows. */
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

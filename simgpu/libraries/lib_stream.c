/* SPDX-License-Identifier: Apache-2.0
 *
 * Kernels of libraries on a stream: they take time and compute nothing. Those that use memory of
 * the program are launched through the driver, with its addresses. Any thread.
 */
#include <string.h>
#include "../core/clock.h"
#include "../core/contents.h"
#include "../kernels/kernels.h"
#include "lib.h"

/* The call in progress. */
static __thread struct {
	const char *function;
	uintptr_t words[LIBRARY_WORDS];
	int n;
} uses;

void lib_uses(const char *function)
{
	uses.function = function;
	uses.n = 0;
}

void lib_use(const void *address)
{
	if (uses.function && uses.n < LIBRARY_WORDS && sim_is_device_ptr(address))
		uses.words[uses.n++] = (uintptr_t)address;
}

/* Known entries are those that the host copied there, or that a small kernel computed. */
void lib_use_array(const void *array, double count)
{
	void *entry;

	if (!sim_is_device_ptr(array))
		return;
	for (size_t i = 0; i < LIBRARY_WORDS && (double)i < count; i++)
		if (contents_look(&entry, array, i * sizeof(entry), sizeof(entry)))
			lib_use(entry);
}

void lib_used(void)
{
	uses.function = NULL;
	uses.n = 0;
}

static void launch(void *stream, uint64_t ns, bool collective)
{
	struct library_work work = { ns, collective };

	if (!(uses.n || (collective && uses.function)) ||
	    !library_call(uses.function, uses.words, uses.n, stream, &work))
		library_run(stream, &work);
}

void lib_launch(void *stream)
{
	launch(stream, time_of_kernel(1, 1), false);
}

void lib_product(void *stream, double operations, int cuda_type, double bytes)
{
	launch(stream, time_of_product(operations, cuda_type, bytes), false);
}

void lib_collective(const char *kernel, void *stream, double bytes, int ranks)
{
	lib_uses(kernel);
	launch(stream, time_of_collective(bytes, ranks), true);
	lib_used();
}

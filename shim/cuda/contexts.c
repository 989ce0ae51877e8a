/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A short list, because programs rarely make contexts besides the devices' primary ones. Without
 * any, an allocation costs two more loads.
 */
#include "contexts.h"

#include "../../format/record.h"
#include "../capture.h"
#include "call.h"

#define MOST 256u

static uint64_t contexts[MOST];
static uint32_t alive, end; /* end: after the last place that was ever used */

static __thread struct {
	uint64_t context;
	uint32_t generation; /* a forked child has reported nothing yet */
} said __attribute__((tls_model("initial-exec")));

static bool replace(uint32_t i, uint64_t from, uint64_t to)
{
	return __atomic_load_n(&contexts[i], __ATOMIC_RELAXED) == from &&
	       __atomic_compare_exchange_n(&contexts[i], &from, to, false, __ATOMIC_SEQ_CST,
					   __ATOMIC_RELAXED);
}

static void reach(uint32_t to)
{
	uint32_t now = __atomic_load_n(&end, __ATOMIC_RELAXED);

	while (now < to && !__atomic_compare_exchange_n(&end, &now, to, false, __ATOMIC_SEQ_CST,
							__ATOMIC_RELAXED))
		;
}

bool contexts_note(uint64_t context)
{
	for (uint32_t i = 0; context && i < MOST; i++)
		if (replace(i, 0, context)) {
			reach(i + 1);
			__atomic_add_fetch(&alive, 1, __ATOMIC_SEQ_CST);
			break;
		}
	return true;
}

bool contexts_drop(uint64_t context)
{
	uint32_t n = __atomic_load_n(&end, __ATOMIC_ACQUIRE);

	for (uint32_t i = 0; context && i < n; i++)
		if (replace(i, context, 0)) {
			__atomic_sub_fetch(&alive, 1, __ATOMIC_SEQ_CST);
			return true;
		}
	return false;
}

/* The current context if the program made it, else 0. */
static uint64_t current(void)
{
	typeof(&cuCtxGetCurrent) ask = MAYBE_DRIVER(cuCtxGetCurrent);
	uint32_t n = __atomic_load_n(&end, __ATOMIC_ACQUIRE);
	void *context = NULL;

	if (!__atomic_load_n(&alive, __ATOMIC_ACQUIRE) || !ask || ask(&context) || !context)
		return 0;
	for (uint32_t i = 0; i < n; i++)
		if (__atomic_load_n(&contexts[i], __ATOMIC_ACQUIRE) == (uint64_t)context)
			return (uint64_t)context;
	return 0;
}

void contexts_say(void)
{
	struct gmt_event e = { .kind = GMT_CTX_CURRENT, .device = -1 };
	uint64_t before = said.generation == gmt_generation() ? said.context : 0;

	if (!__atomic_load_n(&alive, __ATOMIC_RELAXED) && !before)
		return;
	e.addr = current();
	if (e.addr == before)
		return;
	said.context = e.addr;
	said.generation = gmt_generation();
	gmt_capture(&e);
}

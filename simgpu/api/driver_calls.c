/* SPDX-License-Identifier: Apache-2.0
 *
 * See driver.h. Any thread.
 */
#include "driver.h"

static struct driver_calls calls = {
#define CALL(name, symbol, version) symbol,
#include "driver_calls.def"
#undef CALL
};

static void find_one(const char *name, int version, void **slot)
{
	void *found = NULL;

	if (!driver_ask(name, &found, version, 0, NULL) && found)
		*slot = found;
}

static void find_functions(void)
{
#define CALL(name, symbol, version) find_one(#name, version, (void **)&calls.name);
#include "driver_calls.def"
#undef CALL
}

const struct driver_calls *driver(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, find_functions);
	return &calls;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * cuRAND: generators exist and have a state on the device; their numbers are not computed. The
 * state is an approximation: 48 bytes for each of 64 blocks of 256 threads. Any thread.
 */
#include "lib.h"

enum { RAND_OK = 0, RAND_NOT_INITIALIZED = 101, RAND_ALLOC_FAILED = 102, RAND_RANGE = 104 };

#define KIND  LIB_RAND
#define STATE ((size_t)48 * 64 * 256)

struct generator {
	void *stream, *state;
};

static int create_generator(struct generator **out, bool on_device)
{
	struct generator *g;

	if (!out)
		return RAND_RANGE;
	g = sim_handle(KIND, sizeof(*g));
	if (!g)
		return RAND_ALLOC_FAILED;
	g->state = on_device ? lib_alloc(STATE) : NULL;
	if (on_device && !g->state) {
		sim_handle_free(g);
		return RAND_ALLOC_FAILED;
	}
	*out = g;
	return RAND_OK;
}

API_CALL(int, curandCreateGenerator, create_generator(out, true), struct generator **out,
	 UNUSED int type)
API_CALL(int, curandCreateGeneratorHost, create_generator(out, false), struct generator **out,
	 UNUSED int type)

API(int, curandDestroyGenerator, struct generator *g)
{
	if (!sim_handle_check(g, KIND))
		return RAND_NOT_INITIALIZED;
	lib_free(g->state);
	sim_handle_free(g);
	return RAND_OK;
}

API(int, curandSetStream, struct generator *g, void *stream)
{
	if (!sim_handle_check(g, KIND))
		return RAND_NOT_INITIALIZED;
	g->stream = stream;
	return RAND_OK;
}

void lib_use_generator(void *handle)
{
	struct generator *g = sim_handle_check(handle, KIND);

	if (g)
		lib_use(g->state);
}

API_PROPERTY(curandGetProperty, "curand", RAND_RANGE)
API_VERSION(curandGetVersion, "curand", 1000, RAND_RANGE, int *out)

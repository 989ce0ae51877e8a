/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CUPTI as a second source of the same events, for calls that no hook sees. Off unless
 * GPUMEMTRACE_CUPTI is on. It subscribes when the driver starts and loads this library, which
 * CUDA_INJECTION64_PATH then names, or at the first event, whichever is first. If CUPTI is not
 * available, one message says so and recording goes on without it. CUPTI before 13.2 allows one
 * subscriber: when a tool of the program such as torch.profiler subscribes, our subscription ends.
 */
#include "cupti_calls.h"

#include "../shim/capture.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LOADER		  "CUDA_INJECTION64_PATH"
#define CUPTI_ERROR_TAKEN 39 /* ..._MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED */
#define CUPTI_ERROR_NONE  15 /* ..._NOT_INITIALIZED */

int InitializeInjection(void) __attribute__((visibility("default")));
int cuptiSubscribe(void **, void *, void *) __attribute__((visibility("default")));

struct functions {
	int (*version)(uint32_t *version);
	int (*subscribe)(void **subscriber, void *callback, void *user);
	int (*subscribe_v2)(void **subscriber, void *callback, void *user,
			    struct cupti_subscriber *params);
	int (*enable)(uint32_t on, void *subscriber, int domain, uint32_t id);
	int (*name_of)(int result, const char **name);
};

struct enabling {
	const struct functions *f;
	void *subscriber;
	unsigned refused;
};

/* Our subscription if CUPTI allows only one. NULL: none, or ended for another tool. */
static void *sole_subscriber;

static const char *const libraries[] = { "libcupti.so.13", "libcupti.so.12", "libcupti.so.11.8",
					 "libcupti.so" };

#define LIBRARIES (sizeof(libraries) / sizeof(libraries[0]))

/* Whether a look-up through `handle` finds CUPTI's cuptiSubscribe and not the one below. */
static bool has_cupti(void *handle)
{
	void *found = dlsym(handle, "cuptiSubscribe");

	return found && found != (void *)cuptiSubscribe;
}

/* Uses a copy of CUPTI that is already loaded, because a second copy in a process causes errors. */
static void *library(bool may_load)
{
	void *handle = NULL;

	if (has_cupti(RTLD_NEXT))
		return RTLD_NEXT;
	if (has_cupti(RTLD_DEFAULT))
		return dlopen(NULL, RTLD_LAZY);
	for (size_t i = 0; i < LIBRARIES && !handle; i++)
		handle = dlopen(libraries[i], RTLD_LAZY | RTLD_NOLOAD);
	for (size_t i = 0; i < LIBRARIES && !handle && may_load; i++)
		handle = dlopen(libraries[i], RTLD_LAZY | RTLD_LOCAL);
	return handle;
}

/* A handle of the object that contains `caller`, to find the CUPTI that it is linked with, even
 * outside the global scope. NULL if there is none. The user of the handle closes it. */
static void *linked_with(const void *caller)
{
	void *handle = NULL;
	Dl_info where;

	if (dladdr(caller, &where) && where.dli_fname)
		handle = dlopen(where.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
	if (!handle || has_cupti(handle))
		return handle;
	dlclose(handle);
	return NULL;
}

static bool load(struct functions *f)
{
	void *handle = library(true);

	if (!handle)
		return false;
	*(void **)&f->version = dlsym(handle, "cuptiGetVersion");
	*(void **)&f->subscribe = dlsym(handle, "cuptiSubscribe");
	*(void **)&f->subscribe_v2 = dlsym(handle, "cuptiSubscribe_v2");
	*(void **)&f->enable = dlsym(handle, "cuptiEnableCallback");
	*(void **)&f->name_of = dlsym(handle, "cuptiGetResultString");
	*(void **)&cupti_device_of = dlsym(handle, "cuptiGetDeviceId");
	return f->subscribe && f->enable;
}

/* Subscribes, if possible in a way that allows other subscribers. Returns CUPTI's result. */
static int subscribe(const struct functions *f, void **subscriber)
{
	struct cupti_subscriber params = { .bytes = sizeof(params),
					   .name = "gpumemtrace",
					   .allow_others = 1 };
	uint32_t version = 0;
	int result;

	if (f->subscribe_v2 && f->version && !f->version(&version) && version >= CUPTI_SHARED_SINCE)
		return f->subscribe_v2(subscriber, (void *)cupti_call, NULL, &params);
	result = f->subscribe(subscriber, (void *)cupti_call, NULL);
	if (!result)
		__atomic_store_n(&sole_subscriber, *subscriber, __ATOMIC_RELEASE);
	return result;
}

static void enable(int domain, uint32_t id, void *ctx)
{
	struct enabling *e = ctx;

	if (e->f->enable(1, e->subscriber, domain, id))
		e->refused++;
}

/* Writes a text such as "cuptiSubscribe: 39 CUPTI_ERROR_..._NOT_SUPPORTED, another tool has it". */
static void describe(const struct functions *f, int result, char *text, size_t room)
{
	const char *name = NULL;

	if (!f->name_of || f->name_of(result, &name) || !name)
		name = "";
	snprintf(text, room, "cuptiSubscribe: %d %s%s", result, name,
		 result == CUPTI_ERROR_TAKEN ? ", another tool has it" : "");
}

/* Subscribes to CUPTI and describes the result for the recording; false: CUPTI gives no events. */
static bool start(char *text, size_t room)
{
	struct functions f = { 0 };
	struct enabling e = { .f = &f };
	int result;

	if (!load(&f)) {
		snprintf(text, room, "there is no libcupti to load");
		return false;
	}
	result = subscribe(&f, &e.subscriber);
	if (result) {
		describe(&f, result, text, room);
		return false;
	}
	cupti_calls_each(enable, &e);
	snprintf(text, room, "subscribed");
	return true;
}

static void begin_source(void)
{
	static uint32_t begun;
	static bool said;
	char state[128], text[192];

	if (!gmt_wants_cupti() || __atomic_exchange_n(&begun, 1, __ATOMIC_SEQ_CST))
		return;
	if (!start(state, sizeof(state))) {
		snprintf(text, sizeof(text), "CUPTI is not used (%s); recording goes on without it",
			 state);
		gmt_say(&said, text);
	}
	gmt_meta("cupti", state, strlen(state));
}

int InitializeInjection(void)
{
	begin_source();
	return 1;
}

/* Called by a tool of the program: ends our sole subscription, then calls the tool's own CUPTI. */
int cuptiSubscribe(void **subscriber, void *callback, void *user)
{
	static const char state[] = "left to another tool of the program";
	void *linked = has_cupti(RTLD_NEXT) ? NULL : linked_with(__builtin_return_address(0));
	void *handle = linked ? linked : library(false);
	int (*real)(void **, void *, void *) = NULL;
	int (*unsubscribe)(void *) = NULL;
	void *ours;

	if (handle) {
		*(void **)&real = dlsym(handle, "cuptiSubscribe");
		*(void **)&unsubscribe = dlsym(handle, "cuptiUnsubscribe");
	}
	if (linked)
		dlclose(linked); /* the caller keeps it loaded */
	if (!real)
		return CUPTI_ERROR_NONE;
	ours = unsubscribe ? __atomic_exchange_n(&sole_subscriber, NULL, __ATOMIC_ACQ_REL) : NULL;
	if (ours && !unsubscribe(ours))
		gmt_meta("cupti", state, sizeof(state) - 1);
	return real(subscriber, callback, user);
}

/* This library's absolute path. LD_PRELOAD can name it relative to the starting directory. */
static bool own_path(char *path, size_t room)
{
	size_t n = 0;
	Dl_info us;

	if (!dladdr((void *)own_path, &us) || !us.dli_fname)
		return false;
	if (us.dli_fname[0] != '/') {
		if (!getcwd(path, room / 2))
			return false;
		n = strlen(path);
		path[n++] = '/';
	}
	if (strlen(us.dli_fname) >= room - n)
		return false;
	strcpy(path + n, us.dli_fname);
	return true;
}

__attribute__((constructor)) static void name_us(void)
{
	char path[4096];

	if (gmt_wants_cupti() && !getenv(LOADER) && own_path(path, sizeof(path)))
		setenv(LOADER, path, 0);
}

GMT_SOURCE(cupti, begin_source, NULL, NULL);

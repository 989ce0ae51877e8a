/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `gpumemtrace ctl` writes a request into the live file, which this process has mapped: no signal,
 * no socket, no thread. Runs on the drain's thread in each of its rounds. The request is foreign
 * data, so lengths are checked before use.
 */
#include "requests.h"

#include "../../format/control.h"
#include "../base/os.h"
#include "../rings/live.h"
#include "../rings/state.h"
#include "../stacks/intern_stack.h"

#include <string.h>

typedef void mark_fn(const char *name, size_t len);

#define LOAD(p)	    __atomic_load_n(p, __ATOMIC_RELAXED)
#define STORE(p, v) __atomic_store_n(p, v, __ATOMIC_RELAXED)

static void pause_on(struct gmt_control *c, mark_fn *mark)
{
	static const char name[] = "recording paused";

	(void)c;
	if (session_pause_asked(true))
		mark(name, sizeof(name) - 1);
}

static void pause_off(struct gmt_control *c, mark_fn *mark)
{
	static const char name[] = "recording resumed";

	(void)c;
	if (session_pause_asked(false))
		mark(name, sizeof(name) - 1);
}

static void mark_now(struct gmt_control *c, mark_fn *mark)
{
	uint32_t len = LOAD(&c->length);
	char name[GMT_CONTROL_TEXT];

	len = len < GMT_CONTROL_TEXT ? len : GMT_CONTROL_TEXT;
	memcpy(name, c->text, len);
	mark(name, len);
}

static void carry_out(struct gmt_control *c, mark_fn *mark)
{
	static void (*const acts[])(struct gmt_control *, mark_fn *) = {
		[GMT_REQUEST_PAUSE] = pause_on,
		[GMT_REQUEST_RESUME] = pause_off,
		[GMT_REQUEST_MARK] = mark_now,
	};
	uint32_t what = __atomic_exchange_n(&c->what, GMT_REQUEST_NONE, __ATOMIC_ACQ_REL);

	if (what < sizeof(acts) / sizeof(acts[0]) && acts[what])
		acts[what](c, mark);
}

static void write_figures(struct gmt_control *c, uint64_t bytes, uint64_t dropped)
{
	uint32_t paused = LOAD(&gmt_session.paused);

	STORE(&c->paused, paused & SESSION_PAUSE_ASKED ? 1 : 0);
	STORE(&c->program, paused & ~SESSION_PAUSE_ASKED);
	STORE(&c->events, LOAD(&gmt_session.seq));
	STORE(&c->bytes, bytes);
	STORE(&c->dropped, dropped);
	STORE(&c->memory, os_mapped() + live_bytes());
	STORE(&c->nodes, stack_nodes());
	STORE(&c->cut, stack_nodes_cut());
	__atomic_store_n(&c->time_ns, os_now(), __ATOMIC_RELEASE);
}

void requests_look(uint64_t bytes, uint64_t dropped, mark_fn *mark)
{
	struct gmt_control *c = live_control();
	bool asked = LOAD(&c->what) != GMT_REQUEST_NONE;

	if (asked)
		carry_out(c, mark);
	write_figures(c, bytes, dropped);
	if (asked)
		__atomic_add_fetch(&c->done, 1, __ATOMIC_RELEASE);
}

void requests_dropped(uint64_t n)
{
	STORE(&live_control()->dropped, n);
}

void requests_open(void)
{
	__atomic_store_n(&live_control()->version, GMT_CONTROL_VERSION, __ATOMIC_RELEASE);
}

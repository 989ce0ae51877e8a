/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Start, end and fork of a recording. The start runs on the thread of the first event, with
 * whatever locks the program holds. It waits for no thread of the program; they wait for it, but
 * not for long.
 */
#include "session.h"

#include "../stacks/code.h"
#include "../capture.h"
#include "../base/config.h"
#include "early.h"
#include "facts.h"
#include "../base/forkgate.h"
#include "../stacks/intern_stack.h"
#include "intern_string.h"
#include "../rings/live.h"
#include "../stacks/modules.h"
#include "notes.h"
#include "output.h"
#include "source.h"
#include "worker.h"
#include "../rings/thread.h"
#include "../stacks/frame_variables.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define START_WAIT_NS 100000000ull
#define EXIT_WAIT_NS  30000000000ull
#define LEAVE_WAIT_NS 2000000000ull

extern const struct gmt_source __start_gmt_sources[] __attribute__((weak, visibility("hidden")));
extern const struct gmt_source __stop_gmt_sources[] __attribute__((weak, visibility("hidden")));

#define FOR_EACH_SOURCE(s) \
	for (const struct gmt_source *s = __start_gmt_sources; s < __stop_gmt_sources; s++)

static bool place_marker(void)
{
	if (!gmt_session.marker) {
		gmt_session.marker = os_map(4096);
		if (!gmt_session.marker)
			return false;
		madvise(gmt_session.marker, 4096, MADV_WIPEONFORK);
	}
	*gmt_session.marker = 1;
	return true;
}

/* On the thread of the first event: maps memory and starts our thread, which opens the files. */
static bool launch(void)
{
	struct os_calm calm;
	bool ok;

	os_calm_begin(&calm);
	session_claim();
	ok = place_marker() && live_begin();
	if (ok) {
		early_replay(thread_self()); /* before any other thread has an event */
		session_set_state(SESSION_ON);
		ok = worker_start();
	}
	if (!ok)
		worker_failed(EAGAIN);
	os_calm_end(&calm);
	return ok;
}

static bool start(void)
{
	struct thread *t = thread_self();
	uintptr_t busy = t->busy;

	if (!launch())
		return false;
	t->busy = THREAD_BUSY_OWN; /* calls of the sources are not the program's */
	FOR_EACH_SOURCE (s)
		if (s->start)
			s->start();
	t->busy = busy;
	session_await_files();
	return session_on();
}

/* Waits, for a limited time, while another thread is in launch(). True: the session is on. */
static bool wait_for_start(void)
{
	uint64_t until = __atomic_load_n(&gmt_session.began_ns, __ATOMIC_RELAXED) + START_WAIT_NS;

	while (session_is_starting() && os_now() < until)
		os_futex_wait(&gmt_session.state, SESSION_STARTING, START_WAIT_NS / 20);
	return session_on();
}

bool session_is_starting(void)
{
	return __atomic_load_n(&gmt_session.state, __ATOMIC_ACQUIRE) == SESSION_STARTING;
}

bool session_begin(void)
{
	uint32_t state = __atomic_load_n(&gmt_session.state, __ATOMIC_ACQUIRE);

	if (state <= SESSION_ENDING)
		return false;
	if (state == SESSION_ON && *gmt_session.marker == 1)
		return true;
	if (state == SESSION_ON)
		session_fork_child(false);
	if (state == SESSION_IDLE && !os_may(OS_ALL)) {
		session_set_state(SESSION_OFF); /* no recording can be begun any more */
		return false;
	}
	if (state == SESSION_IDLE)
		ticks_look();
	if (state == SESSION_IDLE) /* before any thread can see that it starts */
		__atomic_store_n(&gmt_session.began_ns, os_now(), __ATOMIC_RELAXED);
	state = SESSION_IDLE;
	if (__atomic_compare_exchange_n(&gmt_session.state, &state, SESSION_STARTING, false,
					__ATOMIC_SEQ_CST, __ATOMIC_ACQUIRE))
		return start();
	if (state == SESSION_ON || wait_for_start())
		return true;
	if (session_is_starting())
		session_count_lost();
	return false;
}

void session_claim(void)
{
	gmt_session.pid = (uint32_t)getpid();
}

/*
 * A child of vfork, posix_spawn or clone that shares our memory sees all that we see, and must not
 * end our recording. It has another process id, and our drain is not among its threads (the latter
 * decides if a new namespace gives it the same id).
 */
static bool is_own_process(void)
{
	return gmt_session.pid == (uint32_t)getpid() && worker_is_here();
}

/* Makes no system call: programs that forbid themselves almost all of them end here too. */
static bool has_nothing_to_end(void)
{
	uint32_t state = __atomic_load_n(&gmt_session.state, __ATOMIC_ACQUIRE);

	return state != SESSION_ON && state != SESSION_ENDING;
}

/* After exit no recording may begin; an exec can fail, and then the program goes on. True: the
 * caller waits for the end, whichever thread began it. */
static bool switch_off(bool by_exit)
{
	uint32_t state;

	if ((!by_exit && has_nothing_to_end()) || !is_own_process() ||
	    (gmt_session.marker && *gmt_session.marker != 1))
		return false;
	state = __atomic_load_n(&gmt_session.state, __ATOMIC_ACQUIRE);
	while (state > SESSION_ENDING && (by_exit || state == SESSION_ON) &&
	       !__atomic_compare_exchange_n(&gmt_session.state, &state,
					    state == SESSION_ON ? SESSION_ENDING : SESSION_OFF,
					    false, __ATOMIC_SEQ_CST, __ATOMIC_ACQUIRE))
		;
	return state == SESSION_ON || state == SESSION_ENDING;
}

void session_end(void)
{
	if (!switch_off(true))
		return;
	FOR_EACH_SOURCE (s)
		if (s->stop)
			s->stop();
	worker_stop(EXIT_WAIT_NS);
}

bool session_is_here(void)
{
	return session_on() && is_own_process();
}

bool session_leave(void)
{
	return switch_off(false) && worker_stop(LEAVE_WAIT_NS);
}

static void forget_thread(struct thread *t)
{
	t->generation = 0;
	t->ring = NULL;
	t->scratch = NULL;
	t->scratch_bytes = 0;
	t->pushing = false;
	t->busy = 0;
}

void session_fork_child(bool at_once)
{
	bool was_off = gmt_session.state <= SESSION_ENDING;

	session_claim();
	forkgate_reset();
	modules_unload_reset();
	if (gmt_session.state == SESSION_ON || gmt_session.state == SESSION_STARTING) {
		ticks_forget();
		worker_forget();
		live_forget();
		output_forget(at_once);
		modules_forget();
		codes_forget();
		stack_nodes_forget();
		variables_forget();
		sources_forget();
		forget_thread(thread_self());
	}
	strings_forget();
	early_forget();
	facts_repeat();
	meta_forget();
	gmt_session.generation++;
	session_pause_asked(false);
	gmt_session.seq = gmt_session.lost = 0;
	gmt_session.last_thread = gmt_session.called = gmt_session.opened = 0;
	FOR_EACH_SOURCE (s)
		if (s->fork_child)
			s->fork_child();
	if (was_off)
		__atomic_store_n(&gmt_session.state, SESSION_OFF, __ATOMIC_RELEASE);
	else
		session_set_state(SESSION_IDLE);
}

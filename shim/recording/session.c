/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Start, end and fork of a recording. The start runs on the thread of the first event, with
 * whatever locks the program holds; it waits for no other thread. Other threads wait for it a
 * moment, by the clock.
 */
#include "session.h"

#include "../stacks/code.h"
#include "../capture.h"
#include "../base/config.h"
#include "drain.h"
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
#include "../rings/thread.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define START_WAIT_NS 500000000ull
#define EXIT_WAIT_NS  30000000000ull
#define LEAVE_WAIT_NS 2000000000ull

extern const struct gmt_source __start_gmt_sources[] __attribute__((weak, visibility("hidden")));
extern const struct gmt_source __stop_gmt_sources[] __attribute__((weak, visibility("hidden")));

#define FOR_EACH_SOURCE(s) \
	for (const struct gmt_source *s = __start_gmt_sources; s < __stop_gmt_sources; s++)

static bool ending;

static void set_state(uint32_t state)
{
	__atomic_store_n(&gmt_session.state, state, __ATOMIC_SEQ_CST);
	os_futex_wake(&gmt_session.state);
}

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

static int64_t clock_offset(void)
{
	struct timespec real;

	clock_gettime(CLOCK_REALTIME, &real);
	return (int64_t)real.tv_sec * 1000000000 + real.tv_nsec - (int64_t)os_now();
}

/* What opening, growing or mapping a file can end in. strerror() may translate, and so allocate;
 * the C library's strerrordesc_np() came with glibc 2.32. */
static const char *error_text(int err, char number[24])
{
	static const struct {
		int err;
		const char *text;
	} texts[] = {
		{ EACCES, "Permission denied" },
		{ EPERM, "Operation not permitted" },
		{ ENOENT, "No such file or directory" },
		{ ENOTDIR, "Not a directory" },
		{ EISDIR, "Is a directory" },
		{ EEXIST, "File exists" },
		{ ELOOP, "Too many levels of symbolic links" },
		{ ENAMETOOLONG, "File name too long" },
		{ EROFS, "Read-only file system" },
		{ ENOSPC, "No space left on device" },
		{ EDQUOT, "Disk quota exceeded" },
		{ EFBIG, "File too large" },
		{ EMFILE, "Too many open files" },
		{ ENFILE, "Too many open files in system" },
		{ ENOMEM, "Cannot allocate memory" },
		{ ENODEV, "No such device" },
		{ ENXIO, "No such device or address" },
		{ EINVAL, "Invalid argument" },
		{ EIO, "Input/output error" },
	};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		if (texts[i].err == err)
			return texts[i].text;
	snprintf(number, 24, "error %d", err);
	return number;
}

static bool say_failed(int err)
{
	static bool said;
	char text[512], number[24];

	notes_failed(output_get()->path, err);
	snprintf(text, sizeof(text),
		 "cannot write %.300s: %s; the program runs without a recording",
		 output_get()->path, error_text(err, number));
	gmt_say(&said, text);
	return false;
}

/* The rings are in this process's memory alone: a kill takes what is not yet written. */
static void say_unshared(void)
{
	static bool said;

	output_remove_live();
	gmt_say(&said, "the recording's place maps no files; if the program is killed, the events "
		       "of the last moments are lost");
}

static bool open_files(void)
{
	struct gmt_writer_info info = {
		.pid = (uint32_t)getpid(),
		.realtime_minus_monotonic_ns = clock_offset(),
		.level = gmt_config.level,
		.start = os_start_ticks(),
	};
	int err;

	if (!output_open())
		return say_failed(errno);
	errno = os_may_grow_to(GMT_RING_REGION + GMT_LIVE_PAGE) ? ENOSPC : EFBIG;
	if (errno == ENOSPC && live_open(output_get()->live_fd, &info) &&
	    drain_open(output_get()->fd, &info)) {
		if (!live_is_shared())
			say_unshared();
		return true;
	}
	err = errno;
	output_drop();
	live_forget();
	return say_failed(err);
}

/* What stacks and names of the first events need is in the file before the first event. */
static void write_beginning(void)
{
	meta_emit(drain_def);
	strings_each(drain_def);
	modules_update(drain_def);
	drain_flush();
}

static bool start(void)
{
	sigset_t old;
	bool ok;

	os_block_signals(&old);
	session_claim();
	ok = place_marker() && open_files();
	if (ok) {
		notes_begun(output_get()->path);
		early_replay(thread_self()); /* before any other thread has an event */
		set_state(SESSION_ON);
		write_beginning();
		ok = drain_start() || say_failed(EAGAIN);
	}
	if (!ok)
		set_state(SESSION_OFF);
	os_restore_signals(&old);
	if (!ok)
		return false;
	FOR_EACH_SOURCE (s)
		if (s->start)
			s->start();
	return true;
}

static bool wait_for_start(void)
{
	uint64_t began = os_now();

	while (__atomic_load_n(&gmt_session.state, __ATOMIC_ACQUIRE) == SESSION_STARTING &&
	       os_now() - began < START_WAIT_NS)
		os_futex_wait(&gmt_session.state, SESSION_STARTING, 1000000);
	return session_on();
}

bool session_begin(void)
{
	uint32_t state = __atomic_load_n(&gmt_session.state, __ATOMIC_ACQUIRE);

	if (state == SESSION_OFF)
		return false;
	if (state == SESSION_ON && *gmt_session.marker == 1)
		return true;
	if (state == SESSION_ON)
		session_fork_child(false);
	state = SESSION_IDLE;
	if (__atomic_compare_exchange_n(&gmt_session.state, &state, SESSION_STARTING, false,
					__ATOMIC_SEQ_CST, __ATOMIC_ACQUIRE))
		return start();
	return state == SESSION_ON || wait_for_start();
}

void session_claim(void)
{
	gmt_session.pid = (uint32_t)getpid();
}

/*
 * A child of vfork, posix_spawn or clone that shares our memory sees all that we see, and must not
 * end our recording: it has another process id, and our drain is not among its threads (which tells
 * where a new namespace gives the same id).
 */
static bool is_own_process(void)
{
	return gmt_session.pid == (uint32_t)getpid() && drain_is_here();
}

/* No system call: programs that allow themselves next to none end here too. */
static bool has_nothing_to_end(void)
{
	return __atomic_load_n(&gmt_session.state, __ATOMIC_ACQUIRE) != SESSION_ON &&
	       !__atomic_load_n(&ending, __ATOMIC_ACQUIRE);
}

/* After exit nothing is to begin any more; an exec may fail, and then the program goes on. */
static bool switch_off(bool by_exit)
{
	uint32_t state = SESSION_ON;

	if ((!by_exit && has_nothing_to_end()) || !is_own_process() ||
	    (gmt_session.marker && *gmt_session.marker != 1))
		return false;
	if (by_exit)
		state = __atomic_exchange_n(&gmt_session.state, SESSION_OFF, __ATOMIC_SEQ_CST);
	else
		__atomic_compare_exchange_n(&gmt_session.state, &state, SESSION_OFF, false,
					    __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
	if (state == SESSION_ON)
		__atomic_store_n(&ending, true, __ATOMIC_RELEASE);
	return __atomic_load_n(&ending, __ATOMIC_ACQUIRE);
}

/* Several threads may come here: each waits, so that none ends the process under the drain. */
static bool end(uint64_t most_ns)
{
	if (!drain_stop(most_ns))
		return false;
	live_close();
	output_remove_live();
	return true;
}

void session_end(void)
{
	if (!switch_off(true))
		return;
	FOR_EACH_SOURCE (s)
		if (s->stop)
			s->stop();
	end(EXIT_WAIT_NS);
}

bool session_is_here(void)
{
	return session_on() && is_own_process();
}

bool session_leave(void)
{
	return switch_off(false) && end(LEAVE_WAIT_NS);
}

static void forget_thread(struct thread *t)
{
	t->generation = 0;
	t->ring = NULL;
	t->scratch = NULL;
	t->scratch_bytes = 0;
	t->pushing = false;
}

void session_fork_child(bool at_once)
{
	bool was_off = gmt_session.state == SESSION_OFF;

	session_claim();
	ending = false;
	forkgate_reset();
	modules_unload_reset();
	if (gmt_session.state == SESSION_ON || gmt_session.state == SESSION_STARTING) {
		ticks_forget();
		drain_forget();
		live_forget();
		output_forget(at_once);
		modules_forget();
		codes_forget();
		stack_nodes_forget();
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
	gmt_session.last_thread = gmt_session.called = 0;
	FOR_EACH_SOURCE (s)
		if (s->fork_child)
			s->fork_child();
	if (!was_off)
		set_state(SESSION_IDLE);
}

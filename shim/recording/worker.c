/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Our own thread: opens the files, so that a slow disk keeps nobody waiting, writes what the rings
 * hold, and ends the recording.
 */
#include "worker.h"

#include "../base/config.h"
#include "../base/file.h"
#include "../base/forkgate.h"
#include "../bus.h"
#include "../capture.h"
#include "../rings/live.h"
#include "../rings/thread.h"
#include "../stacks/modules.h"
#include "drain.h"
#include "facts.h"
#include "intern_string.h"
#include "notes.h"
#include "output.h"
#include "requests.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#define MS	    1000000ull
#define NAP_LEAST   (10 * MS)
#define NAP_MOST    (160 * MS)
#define FOR_EVER    (1ull << 62)
#define STACK_BYTES (512u * 1024u)

static struct {
	uint32_t done, tid;
	uint32_t asked, met; /* calls of worker_meet, and those answered */
	bool whole;	     /* everything is in the file */
} worker;

/* The text of an error of opening, growing or mapping a file. strerror() can translate, and so
 * allocate; the C library's strerrordesc_np() came with glibc 2.32. */
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
		{ EAGAIN, "No more threads can be started" },
	};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		if (texts[i].err == err)
			return texts[i].text;
	snprintf(number, 24, "error %d", err);
	return number;
}

void worker_failed(int err)
{
	static bool said;
	const char *path = output_get()->path[0] ? output_get()->path : gmt_config.output;
	char text[512], number[24];

	notes_failed(path, err);
	snprintf(text, sizeof(text),
		 "cannot write %.300s: %s; the program runs without a recording", path,
		 error_text(err, number));
	gmt_say(&said, text);
	session_set_state(SESSION_OFF);
	output_drop();
}

static void say_misread(void)
{
	static bool said;

	if (gmt_config.misread[0])
		gmt_say(&said, gmt_config.misread);
}

/* The rings are only in this process's memory: a kill loses what is not yet written. */
static void say_unshared(void)
{
	static bool said;

	output_remove_live();
	gmt_say(&said, "the recording's place maps no files; if the program is killed, the events "
		       "of the last moments are lost");
}

static int64_t clock_offset(void)
{
	struct timespec real;

	os_clock(CLOCK_REALTIME, &real);
	return (int64_t)real.tv_sec * 1000000000 + real.tv_nsec - (int64_t)os_now();
}

static bool open_files(void)
{
	struct gmt_writer_info info = {
		.pid = (uint32_t)getpid(),
		.realtime_minus_monotonic_ns = clock_offset(),
		.level = gmt_config.level,
		.start = file_process_start(),
	};

	bus_setup();
	if (!output_open())
		return false;
	errno = os_may_grow_to(GMT_RING_REGION + GMT_LIVE_PAGE) ? ENOSPC : EFBIG;
	if (errno != ENOSPC || !live_share(&output_get()->live, &info) ||
	    !drain_open(output_get()->recording.fd, &info))
		return false;
	if (!live_is_shared())
		say_unshared();
	notes_begun(output_get()->path);
	return true;
}

/* Definitions for the stacks and names of the first events are in the file before these. Events
 * recorded so far are there before waiting threads go on. */
static bool begin_recording(void)
{
	if (!open_files()) {
		worker_failed(errno);
		return false;
	}
	say_misread();
	meta_emit(drain_def);
	strings_each(drain_def);
	modules_update(drain_def);
	drain_flush();
	requests_open();
	drain_pass(true);
	drain_flush();
	output_begun();
	__atomic_store_n(&gmt_session.opened, 1, __ATOMIC_SEQ_CST);
	os_futex_wake(&gmt_session.opened);
	gitinfo_emit(drain_def);
	return true;
}

static void answer_meeting(void)
{
	uint32_t asked = __atomic_load_n(&worker.asked, __ATOMIC_ACQUIRE);

	if (worker.met == asked)
		return;
	__atomic_store_n(&worker.met, asked, __ATOMIC_RELEASE);
	os_futex_wake(&worker.met);
}

/* Whether the program ended thread by thread, so that none is left that would end the process. */
static bool is_left_alone(uint64_t sleep)
{
	return sleep == NAP_MOST && os_may(OS_FILES) && file_is_last_thread();
}

static void *run(void *arg)
{
	uint64_t sleep = NAP_LEAST;
	bool alone = false;

	(void)arg;
	os_is_our_thread();
	forkgate_leave(NULL);
	__atomic_store_n(&worker.tid, os_tid(), __ATOMIC_RELEASE);
	thread_self()->busy = THREAD_BUSY_OWN;
	thread_self()->depth = THREAD_DEPTH_OWN;
	prctl(PR_SET_NAME, "gpumemtrace");
	if (begin_recording()) {
		while (drain_goes_on() && !(alone = is_left_alone(sleep))) {
			answer_meeting();
			sleep = drain_pass(false)  ? NAP_LEAST
				: sleep < NAP_MOST ? sleep * 2
						   : NAP_MOST;
			drain_thin();
			session_await_call(sleep);
		}
		worker.whole = drain_finish();
	}
	__atomic_store_n(&worker.done, 1, __ATOMIC_RELEASE);
	os_futex_wake(&worker.done);
	while (!alone) /* a thread's end makes calls that the program might have forbidden */
		os_futex_wait(&worker.done, 1, FOR_EVER);
	return NULL;
}

/* Holds the gate until the new thread runs our code: sanitizers allocate where threads start, and a
 * child forked at that moment would wait for the allocator's locks for ever. All signals but SIGBUS
 * are blocked, so that the thread handles none. */
bool worker_start(void)
{
	sigset_t most, mask;
	pthread_attr_t attr;
	pthread_t thread;
	bool ok;

	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(&attr, STACK_BYTES);
	forkgate_enter(&mask);
	sigfillset(&most);
	sigdelset(&most, SIGBUS);
	pthread_sigmask(SIG_SETMASK, &most, NULL);
	ok = !pthread_create(&thread, &attr, run, NULL);
	if (ok)
		pthread_sigmask(SIG_SETMASK, &mask, NULL);
	else
		forkgate_leave(&mask);
	pthread_attr_destroy(&attr);
	return ok;
}

bool worker_is_here(void)
{
	uint32_t tid = __atomic_load_n(&worker.tid, __ATOMIC_ACQUIRE);

	/* 0: it was not started; done: its thread is gone */
	return !tid || __atomic_load_n(&worker.done, __ATOMIC_ACQUIRE) || os_thread_is_here(tid);
}

void worker_meet(uint64_t most_ns)
{
	uint32_t asked = __atomic_add_fetch(&worker.asked, 1, __ATOMIC_ACQ_REL), met;
	uint64_t start = os_now();

	session_call_drain();
	while ((met = __atomic_load_n(&worker.met, __ATOMIC_ACQUIRE)) != asked &&
	       !__atomic_load_n(&worker.done, __ATOMIC_ACQUIRE) && os_now() - start < most_ns)
		os_futex_wait(&worker.met, met, MS);
}

bool worker_stop(uint64_t most_ns)
{
	uint64_t start = os_now();

	drain_ask_to_stop();
	while (!__atomic_load_n(&worker.done, __ATOMIC_ACQUIRE)) {
		if (os_now() - start > most_ns)
			return false;
		os_futex_wait(&worker.done, 0, 100 * MS);
	}
	return worker.whole;
}

void worker_forget(void)
{
	drain_forget();
	memset(&worker, 0, sizeof(worker));
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The process's life: load, fork, exit. The constructor runs in every program of a process tree,
 * most of which never touch a device: it reads the settings, notes a few addresses, and that is
 * all.
 */
#include "capture.h"
#include "../format/record.h"
#include "base/config.h"
#include "base/forkgate.h"
#include "base/say_once.h"
#include "stacks/native.h"
#include "cuda/nvtx.h"
#include "leave.h"
#include "recording/notes.h"
#include "recording/output.h"
#include "stacks/python.h"
#include "recording/session.h"
#include "recording/source.h"
#include "rings/thread.h"

#include <pthread.h>

static void fork_prepare(void)
{
	forkgate_close();
}

static void fork_parent(void)
{
	struct gmt_event e = { .kind = GMT_FORK, .device = -1 };

	forkgate_open();
	if (session_on())
		gmt_capture(&e);
}

static void fork_child(void)
{
	session_fork_child(true);
}

__attribute__((constructor)) static void process_load(void)
{
	say_setup();
	gmt_settings_read(&gmt_config);
	notes_setup(gmt_config.enabled);
	if (!gmt_config.enabled)
		return;
	session_claim();
	leave_setup();
	output_setup();
	sources_setup();
	thread_setup();
	native_setup();
	if (gmt_config.stacks & GMT_STACKS_PYTHON)
		python_find(false);
	nvtx_setup();
	pthread_atfork(fork_prepare, fork_parent, fork_child);
	__atomic_store_n(&gmt_session.state, SESSION_IDLE, __ATOMIC_RELEASE);
}

__attribute__((destructor)) static void process_unload(void)
{
	session_end();
}

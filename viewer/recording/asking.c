/* SPDX-License-Identifier: Apache-2.0 */
#include "asking.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "../base/proc.h"
#include "../base/say.h"
#include "running.h"

#define PATIENCE_MS 5000
#define LOOK_MS	    2

static void rest(void)
{
	const struct timespec t = { 0, LOOK_MS * 1000000 };

	nanosleep(&t, NULL);
}

static int map(struct asking *k, const char *path)
{
	struct stat st;

	k->fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (k->fd < 0 && errno == ENOENT)
		return say_error(EXIT_USAGE,
				 "%s is not there: the program has ended, or its "
				 "recording is in another place",
				 path);
	if (k->fd < 0)
		return say_error(EXIT_UNREADABLE, "%s: %s%s", path, strerror(errno),
				 errno == EACCES ? "; it belongs to another user" : "");
	if (fstat(k->fd, &st) || !S_ISREG(st.st_mode) || (uint64_t)st.st_size < GMT_LIVE_PAGE)
		return say_error(EXIT_UNREADABLE, "%s is not a live file", path);
	k->bytes = (uint64_t)st.st_size;
	k->page = mmap(NULL, k->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, k->fd, 0);
	if (k->page != MAP_FAILED)
		return 0;
	k->page = NULL;
	return say_error(EXIT_UNREADABLE, "%s: %s", path, strerror(errno));
}

static int check(struct asking *k, const char *path)
{
	const struct gmt_live_header *h = (const struct gmt_live_header *)k->page;

	if (h->magic != GMT_LIVE_MAGIC || h->page != GMT_LIVE_PAGE)
		return say_error(EXIT_UNREADABLE, "%s is not a live file", path);
	k->pid = h->pid;
	k->c = gmt_control_of(k->page);
	if (h->closed || !running_lives(h->pid))
		return say_error(EXIT_USAGE, "process %u has ended; its recording can be read",
				 h->pid);
	if (k->c->version != GMT_CONTROL_VERSION)
		return say_error(EXIT_USAGE,
				 "process %u is recorded by %s version of the library, which takes "
				 "no requests from this one",
				 h->pid, k->c->version ? "another" : "an older");
	return 0;
}

int asking_open(struct asking *k, const char *recording)
{
	char path[PATH_MAX + 8];
	int rc;

	*k = (struct asking){ .fd = -1 };
	snprintf(path, sizeof(path), "%s.live", recording);
	rc = map(k, path);
	return rc ? rc : check(k, path);
}

void asking_close(struct asking *k)
{
	if (k->page)
		munmap(k->page, k->bytes);
	if (k->fd >= 0)
		close(k->fd);
}

static int no_answer(const struct asking *k)
{
	char text[PROC_STAT], state;
	const char *stat = proc_stat(text, (pid_t)k->pid);

	state = stat ? *stat : 'Z';
	if (state == 'Z')
		return say_error(EXIT_USAGE, "process %u has ended; its recording can be read",
				 k->pid);
	if (state == 'T' || state == 't')
		return say_error(EXIT_CHECK,
				 "process %u is stopped and does not answer; nothing was changed "
				 "(kill -CONT %u lets it go on)",
				 k->pid, k->pid);
	return say_error(EXIT_CHECK,
			 "process %u does not answer for 5 seconds; nothing was changed", k->pid);
}

/* One at a time; whoever holds it waits for an answer at most. */
static int lock(const struct asking *k)
{
	for (int ms = 0; ms < 2 * PATIENCE_MS; ms += LOOK_MS, rest())
		if (!flock(k->fd, LOCK_EX | LOCK_NB))
			return 0;
	return say_error(EXIT_CHECK, "another gpumemtrace ctl is waiting for process %u", k->pid);
}

static bool wait_for(const struct asking *k, uint32_t done)
{
	for (int ms = 0; ms < PATIENCE_MS; ms += LOOK_MS, rest())
		if (__atomic_load_n(&k->c->done, __ATOMIC_ACQUIRE) != done)
			return true;
	return false;
}

int asking_ask(struct asking *k, enum gmt_request what, const char *text)
{
	size_t len = text ? strnlen(text, GMT_CONTROL_TEXT) : 0;
	uint32_t done;
	int rc = lock(k);

	if (rc)
		return rc;
	done = __atomic_load_n(&k->c->done, __ATOMIC_ACQUIRE);
	memcpy(k->c->text, text ? text : "", len);
	__atomic_store_n(&k->c->length, (uint32_t)len, __ATOMIC_RELAXED);
	__atomic_store_n(&k->c->what, what, __ATOMIC_RELEASE);
	/* what the process has taken at the last moment it carries out */
	if (!wait_for(k, done) &&
	    (__atomic_exchange_n(&k->c->what, GMT_REQUEST_NONE, __ATOMIC_ACQ_REL) ||
	     !wait_for(k, done)))
		rc = no_answer(k);
	flock(k->fd, LOCK_UN);
	return rc;
}

void asking_rings(const struct asking *k, struct asking_rings *out)
{
	*out = (struct asking_rings){ 0 };
	for (uint64_t at = GMT_LIVE_PAGE; at + GMT_RING_REGION <= k->bytes; at += GMT_RING_REGION) {
		const struct gmt_ring *r = (const struct gmt_ring *)(k->page + at);
		uint32_t used = gmt_ring_used(r);

		used = used < GMT_RING_SLOTS ? used : GMT_RING_SLOTS;
		out->rings++;
		out->owned += __atomic_load_n(&r->state, __ATOMIC_RELAXED) == GMT_RING_OWNED;
		out->waiting += used;
		out->fullest = used > out->fullest ? used : out->fullest;
	}
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Processes that share the devices: each writes the bytes that it holds into a table in the file of
 * usage.c, so that a device is as full for each as a real one. Memory of an ended process is free.
 * If two processes request the last bytes at once, both may run out of memory. Any thread.
 */
#include "processes.h"
#include <string.h>
#include <unistd.h>

#define NOBODY	0u
#define CLEANED ~0u /* the part of a dead process, which another one frees now */

struct part {
	uint32_t pid;
	uint64_t start; /* of the process, in ticks since boot; 0: not known */
	uint64_t used[SIM_MAX_DEVICES];
};

struct processes {
	uint32_t count; /* parts up to the last that was ever taken */
	struct part parts[PROCESSES];
};

static struct processes *all;
static struct part unshared; /* used if the table is full */
static struct part *mine = &unshared;

size_t processes_bytes(void)
{
	return sizeof(struct processes);
}

static void clear_part(struct part *p, uint32_t pid)
{
	if (!__atomic_compare_exchange_n(&p->pid, &pid, CLEANED, false, __ATOMIC_ACQ_REL,
					 __ATOMIC_RELAXED))
		return;
	p->start = 0;
	memset(p->used, 0, sizeof(p->used));
	__atomic_store_n(&p->pid, NOBODY, __ATOMIC_RELEASE);
}

static bool is_dead(const struct part *p, uint32_t pid)
{
	uint64_t used, start;

	return !process_lives((int)pid, &used, &start) || (p->start && start && p->start != start);
}

/* Another process's part, or NULL. */
static struct part *other(uint32_t i, uint32_t *pid)
{
	struct part *p = &all->parts[i];

	*pid = __atomic_load_n(&p->pid, __ATOMIC_ACQUIRE);
	return p == mine || *pid == NOBODY || *pid == CLEANED ? NULL : p;
}

static uint32_t count(void)
{
	return all ? __atomic_load_n(&all->count, __ATOMIC_ACQUIRE) : 0;
}

static void forget_dead(void)
{
	uint32_t pid, n = count();

	for (uint32_t i = 0; i < n; i++) {
		struct part *p = other(i, &pid);

		if (p && is_dead(p, pid))
			clear_part(p, pid);
	}
}

void processes_begin(void *table)
{
	uint32_t pid, own = (uint32_t)getpid();

	all = table;
	for (uint32_t i = 0; i < count(); i++)
		if (other(i, &pid) && pid == own)
			clear_part(&all->parts[i], pid);
}

static bool claim_part(struct part *p, uint32_t pid)
{
	uint32_t nobody = NOBODY;

	return __atomic_compare_exchange_n(&p->pid, &nobody, pid, false, __ATOMIC_ACQ_REL,
					   __ATOMIC_RELAXED);
}

/* Raises the number of parts so that it includes part i. */
static void count_part(uint32_t i)
{
	uint32_t n = count();

	while (n <= i && !__atomic_compare_exchange_n(&all->count, &n, i + 1, true,
						      __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
		;
}

void processes_open(void)
{
	uint32_t pid = (uint32_t)getpid();
	uint64_t used, start;

	if (mine->pid == pid)
		return;
	mine = &unshared;
	forget_dead();
	process_lives((int)pid, &used, &start);
	for (uint32_t i = 0; mine == &unshared && i < PROCESSES; i++) {
		if (!claim_part(&all->parts[i], pid))
			continue;
		mine = &all->parts[i];
		mine->start = start;
		count_part(i);
	}
}

void processes_hold(int device, uint64_t used)
{
	__atomic_store_n(&mine->used[device], used, __ATOMIC_SEQ_CST);
}

static uint64_t sum_others(int device)
{
	uint32_t pid, n = count();
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < n; i++) {
		struct part *p = other(i, &pid);

		bytes += p ? __atomic_load_n(&p->used[device], __ATOMIC_SEQ_CST) : 0;
	}
	return bytes;
}

uint64_t processes_others(int device, uint64_t expected)
{
	uint64_t bytes = sum_others(device);

	if (bytes <= expected)
		return bytes;
	forget_dead();
	return sum_others(device);
}

uint64_t processes_held(int device)
{
	return mine->used[device] + processes_others(device, 0);
}

unsigned int processes_list(int device, struct process_part *out, unsigned int most)
{
	uint64_t own = mine->used[device];
	uint32_t pid, n = count();
	unsigned int found = 0;

	forget_dead();
	if (own && found++ < most)
		out[0] = (struct process_part){ mine->pid ? mine->pid : (uint32_t)getpid(), own };
	for (uint32_t i = 0; i < n; i++) {
		struct part *p = other(i, &pid);

		if (p && p->used[device] && found++ < most)
			out[found - 1] = (struct process_part){ pid, p->used[device] };
	}
	return found;
}

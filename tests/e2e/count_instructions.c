/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counts the instructions of a function of the library, calls included, by single steps: a count
 * hardly changes from run to run, on any machine. A breakpoint lies on its first byte; every
 * 11th call is stepped through to its return. For x86-64, and programs whose threads call
 * it one at a time. Preloaded by test_cost.py; the program calls count_start and count_stop.
 */
#define _GNU_SOURCE
#include <link.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#define BREAKPOINT  0xcc
#define SINGLE_STEP 0x100

void count_start(void);
void count_stop(void);

static uint8_t *entry, first_byte;
static unsigned long calls, counted, instructions, every = 11;

static __thread struct {
	uintptr_t sp; /* at the entry */
	bool inside, counts;
} now __attribute__((tls_model("initial-exec")));

static void enter(greg_t *g)
{
	*entry = first_byte;
	g[REG_RIP] = (greg_t)(uintptr_t)entry;
	g[REG_EFL] |= SINGLE_STEP;
	now.sp = (uintptr_t)g[REG_RSP];
	now.inside = true;
	now.counts = calls++ % every == 0;
}

static void on_trap(int number, siginfo_t *info, void *context)
{
	greg_t *g = ((ucontext_t *)context)->uc_mcontext.gregs;

	(void)number, (void)info;
	if (!now.inside) {
		if ((uintptr_t)g[REG_RIP] == (uintptr_t)entry + 1)
			enter(g);
		return;
	}
	*entry = BREAKPOINT;
	instructions += now.counts;
	if (now.counts && (uintptr_t)g[REG_RSP] <= now.sp)
		return;
	counted += now.counts;
	now.inside = false;
	g[REG_EFL] &= ~(greg_t)SINGLE_STEP;
}

static int find(struct dl_phdr_info *info, size_t size, void *base)
{
	(void)size;
	if (!strstr(info->dlpi_name, "libgpumemtrace.so"))
		return 0;
	*(uintptr_t *)base = info->dlpi_addr;
	return 1;
}

void count_start(void)
{
	struct sigaction a = { .sa_sigaction = on_trap, .sa_flags = SA_SIGINFO | SA_RESTART };
	uintptr_t base = 0, page = (uintptr_t)sysconf(_SC_PAGESIZE);

	dl_iterate_phdr(find, &base);
	entry = (uint8_t *)(base + strtoul(getenv("COUNT_AT"), NULL, 16));
	sigaction(SIGTRAP, &a, NULL);
	mprotect((void *)((uintptr_t)entry & ~(page - 1)), page,
		 PROT_READ | PROT_WRITE | PROT_EXEC);
	first_byte = *entry;
	*entry = BREAKPOINT;
}

void count_stop(void)
{
	*entry = first_byte;
	printf("calls %lu counted %lu instructions %lu\n", calls, counted, instructions);
	fflush(stdout);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Starts and ends the process that simulates the ranks that do not run. */
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../base/asset.h"
#include "../base/interpreter.h"
#include "world.h"

ASSET_FILE(world, "python/gpumemtrace/_world.py");

/* It prints one port for each rank that runs. */
static bool read_ports(struct stand_in *in, size_t count, int fd)
{
	FILE *f = fdopen(fd, "r");
	size_t n = 0;

	while (f && n < count && fscanf(f, "%d", &in->ports[n]) == 1)
		n++;
	if (f)
		fclose(f);
	return n == count;
}

bool stand_in_start(struct stand_in *in, const struct world *w, const char *python, int log)
{
	char size[24], running[24];
	int out;

	snprintf(size, sizeof(size), "%ld", w->size);
	snprintf(running, sizeof(running), "%zu", w->count);
	in->pid = python_start(python, asset_world, (const char *const[]){ size, running, NULL },
			       &out, log);
	return in->pid > 0 && read_ports(in, w->count, out);
}

void stand_in_end(struct stand_in *in)
{
	if (in->pid <= 0)
		return;
	kill(in->pid, SIGKILL);
	waitpid(in->pid, NULL, 0);
	in->pid = 0;
}

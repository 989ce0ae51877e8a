/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Notices from the simulated device about the program that ran on it. The device writes them to a
 * file that we name in its environment (simgpu/README.md).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../base/say.h"
#include "simnotes.h"

#define RUNTIME "runtime "
#define INSIDE                                                                \
	"has NVIDIA's own CUDA runtime inside, which needs NVIDIA's driver: " \
	"it found no GPU on the simulated device"

static char path[256];

/* All processes of the program share the simulated cards. The file in which they count what they
 * hold has no name, so nothing is left behind. */
static void share_cards(void)
{
	char name[64];
	int fd = getenv("SIMGPU_USAGE") ? -1 : memfd_create("gpumemtrace-cards", MFD_CLOEXEC);

	if (fd < 0)
		return;
	snprintf(name, sizeof(name), "/proc/%d/fd/%d", getpid(), fd);
	setenv("SIMGPU_USAGE", name, 1);
}

static void open_notes(void)
{
	const char *folder = getenv("TMPDIR");
	int fd;

	snprintf(path, sizeof(path), "%s/gpumemtrace-notes-XXXXXX",
		 folder && *folder && strlen(folder) < 200 ? folder : "/tmp");
	fd = mkstemp(path);
	if (fd < 0) {
		path[0] = 0;
		return;
	}
	close(fd);
	setenv("SIMGPU_NOTES", path, 1);
}

void simnotes_open(void)
{
	share_cards();
	open_notes();
}

void simnotes_close(struct run_result *r)
{
	FILE *f = path[0] ? fopen(path, "r") : NULL;
	char line[PATH_MAX];

	r->runtime[0] = 0;
	while (f && fgets(line, sizeof(line), f)) {
		line[strcspn(line, "\n")] = 0;
		if (!strncmp(line, RUNTIME, strlen(RUNTIME)) && !r->runtime[0])
			snprintf(r->runtime, sizeof(r->runtime), "%s", line + strlen(RUNTIME));
	}
	if (f)
		fclose(f);
	if (path[0])
		unlink(path);
	/* Replaces the misleading "it allocated no memory": the device did not run this program. */
	if (r->runtime[0] && !r->files)
		snprintf(r->why, sizeof(r->why), "%s " INSIDE, r->runtime);
}

void simnotes_tell(const struct run_result *r)
{
	if (r->runtime[0] && r->files)
		say_note("%s " INSIDE, r->runtime);
}

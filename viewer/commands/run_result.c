/* SPDX-License-Identifier: Apache-2.0 */
#include "run_program.h"

#include <fcntl.h>
#include <glob.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../format/runnotes.h"
#include "../base/plain_file.h"
#include "../ranks/ranks_look.h"
#include "../recording/running.h"

static void note_rank(struct run_ranks *r, long rank)
{
	unsigned bit = 1u << rank % 8;

	if (!(r->seen[rank / 8] & bit))
		r->count++;
	r->seen[rank / 8] |= bit;
}

static void note_folder(struct run_ranks *r, const char *path)
{
	const char *slash = strrchr(path, '/');
	int n = slash ? (int)(slash - path) + 1 : 2;
	char folder[PATH_MAX];

	snprintf(folder, sizeof(folder), "%.*s", n, slash ? path : "./");
	if (r->folder[0] && strcmp(r->folder, folder))
		r->several_folders = true;
	memcpy(r->folder, folder, sizeof(folder));
}

static void run_ranks_note(struct run_ranks *r, const char *path)
{
	struct rank_file f;

	ranks_look(&f, need_text(path));
	if (f.rank >= 0 && f.rank < RUN_RANKS_MOST)
		note_rank(r, f.rank);
	ranks_look_free(&f);
	note_folder(r, path);
}

const char *run_ranks_folder(const struct run_ranks *r)
{
	return r->count > 1 && !r->several_folders ? r->folder : NULL;
}

static struct gmt_notes *notes;

void run_result_listen(void)
{
	int fd = memfd_create("gpumemtrace", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	void *p = MAP_FAILED;
	char path[64];

	if (fd < 0)
		return;
	if (!ftruncate(fd, sizeof(struct gmt_notes)) &&
	    !fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW))
		p = mmap(NULL, sizeof(struct gmt_notes), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED) {
		close(fd);
		return;
	}
	notes = p;
	notes->magic = GMT_NOTES_MAGIC;
	snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)getpid(), fd);
	setenv(GMT_NOTES, path, 1);
}

bool run_result_begun(void)
{
	return notes && __atomic_load_n(&notes->recordings, __ATOMIC_RELAXED);
}

/* ---- files ---- */

static void add_path(struct run_result *r, const char *path)
{
	r->paths = need_grow(r->paths, &r->path_room, r->files + 1, sizeof(*r->paths));
	r->paths[r->files++] = need_text(path);
	r->paths[r->files] = NULL;
}

static void look_at_noted(struct run_result *r, const char *path)
{
	struct gmt_reader_info info;

	if (!running_info(path, &info))
		return;
	path = file_from_here(path);
	run_ranks_note(&r->ranks, path);
	add_path(r, path);
	if (r->files == 1 || info.last_seq > r->events) {
		r->events = info.last_seq;
		snprintf(r->path, sizeof(r->path), "%s", path);
	}
}

static size_t noted_bytes(void)
{
	size_t most = sizeof(notes->files) - 1;

	return !notes ? 0 : notes->files_used < most ? notes->files_used : most;
}

/* The next noted path after `at`, or the first; NULL after the last. */
static const char *next_noted(const char *at)
{
	const char *next = at ? at + strlen(at) + 1 : notes ? notes->files : NULL;

	return next && next < notes->files + noted_bytes() && *next ? next : NULL;
}

static bool is_since(const char *path, const struct timespec *start)
{
	struct stat st;

	return !stat(path, &st) &&
	       (st.st_mtim.tv_sec > start->tv_sec ||
		(st.st_mtim.tv_sec == start->tv_sec && st.st_mtim.tv_nsec >= start->tv_nsec));
}

/* Finds recordings of processes that cannot write notes, such as those in a container or of another
 * user. Used only if there are no notes, because an unnoted file may belong to somebody else. */
static void find_by_name(struct run_result *r, const char *pattern, const struct timespec *start)
{
	char names[PATH_MAX];
	glob_t found = { 0 };

	run_output_glob(pattern, "*", names, sizeof(names));
	glob(names, 0, NULL, &found);
	for (size_t i = 0; i < found.gl_pathc; i++)
		if (is_since(found.gl_pathv[i], start))
			look_at_noted(r, found.gl_pathv[i]);
	globfree(&found);
}

/* ---- why nothing was recorded ---- */

#define SAY(...) snprintf(r->why, sizeof(r->why), __VA_ARGS__)

/* "bash, env and python3" */
static const char *programs(char *text, size_t room)
{
	uint32_t most = notes->loaded < GMT_NOTES_PROGRAMS ? notes->loaded : GMT_NOTES_PROGRAMS;
	uint32_t different = 0, named = 0, last = 0;
	bool again[GMT_NOTES_PROGRAMS] = { false };

	for (uint32_t i = 0; i < most; i++) {
		notes->programs[i][15] = 0;
		for (uint32_t j = 0; j < i && !again[i]; j++)
			again[i] = !strcmp(notes->programs[i], notes->programs[j]);
		if (!again[i])
			different++;
		last = again[i] ? last : i;
	}
	text[0] = 0;
	for (uint32_t i = 0; i < most && named < 5; i++) {
		const char *before = !named ? "" : i == last ? " and " : ", ";

		if (again[i])
			continue;
		text_add(text, room, "%s%s", before, notes->programs[i]);
		named++;
	}
	if (different > named)
		text_add(text, room, " and %" PRIu32 " more", different - named);
	return text;
}

/* Whether NVIDIA's driver, WSL's or a Jetson's has a device file, or the device is simulated. */
static bool has_card(void)
{
	static const char *const names[] = { "/dev/nvidia[0-9]*", "/dev/dxg", "/dev/nvhost-gpu",
					     "/dev/nvgpu" };
	const char *preload = getenv("LD_PRELOAD");
	bool found = preload && strstr(preload, "libsimgpu.so");

	for (size_t i = 0; i < sizeof(names) / sizeof(*names) && !found; i++) {
		glob_t g = { 0 };

		found = !glob(names[i], 0, NULL, &g);
		globfree(&g);
	}
	return found;
}

static void tell_ending(struct run_result *r)
{
	if (child_signal())
		text_add(r->why, sizeof(r->why), "; signal %d (%s) ended the program",
			 child_signal(), strsignal(child_signal()));
}

static void tell_unseen(struct run_result *r)
{
	char text[256];

	if (notes->off == notes->loaded)
		SAY("GPUMEMTRACE_ENABLED switches the library off");
	else if (notes->loaded == 1)
		SAY("no CUDA allocation in %s, the only program that loaded the library",
		    programs(text, sizeof(text)));
	else
		SAY("no CUDA allocation in the programs that loaded the library: %s",
		    programs(text, sizeof(text)));
	if (notes->off != notes->loaded && !has_card())
		text_add(r->why, sizeof(r->why),
			 "; this machine has no NVIDIA GPU, --sim h100-80g simulates one");
	tell_ending(r);
}

static void tell_not_loaded(struct run_result *r, const char *program)
{
	char text[PATH_MAX + 256];

	if (run_program_obstacle(program, text, sizeof(text)))
		SAY("%s", text);
	else
		SAY("no process of %s loaded the library, or another user or a container kept it "
		    "from reporting",
		    program);
	tell_ending(r);
}

static void tell_nothing_recorded(struct run_result *r, const char *program)
{
	if (!notes)
		SAY("no recording was found");
	else if (notes->recordings)
		SAY("the recording %.4000s cannot be read: %s", notes->files,
		    access(notes->files, R_OK) ? strerror(errno) : "it is empty");
	else if (notes->failed)
		SAY("%s could not be written: %s", notes->failed_path, strerror(notes->error));
	else if (notes->loaded)
		tell_unseen(r);
	else
		tell_not_loaded(r, program);
}

void run_result_find(struct run_result *r, char **command, const char *pattern,
		     const struct timespec *start)
{
	*r = (struct run_result){ .files = 0 };
	for (const char *p = next_noted(NULL); p; p = next_noted(p))
		look_at_noted(r, p);
	if (!notes || !notes->loaded)
		find_by_name(r, pattern, start);
	r->refused = notes && notes->refused;
	if (!r->files)
		tell_nothing_recorded(r, command[0]);
}

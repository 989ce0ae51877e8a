/* SPDX-License-Identifier: Apache-2.0 */
#include "run_program.h"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "../base/plain_file.h"
#include "../base/proc.h"

static const int passed_on[] = { SIGINT,  SIGTERM, SIGHUP,   SIGQUIT,
				 SIGUSR1, SIGUSR2, SIGWINCH, SIGCONT };
#define PASSED (sizeof(passed_on) / sizeof(passed_on[0]))

static volatile pid_t child;
static int ended_by;

/* Signals from the terminal are not passed on, because the child is in the same group and gets them
 * itself. */
static void pass_on_signal(int signal, siginfo_t *info, UNUSED void *context)
{
	int keep = errno;

	if (info->si_code != SI_KERNEL && child > 0)
		kill(child, signal);
	errno = keep;
}

static void listen_to_signals(struct sigaction old[PASSED])
{
	struct sigaction action = { .sa_sigaction = pass_on_signal,
				    .sa_flags = SA_SIGINFO | SA_RESTART };

	sigemptyset(&action.sa_mask);
	for (size_t i = 0; i < PASSED; i++)
		sigaction(passed_on[i], &action, &old[i]);
}

static void become_child(char **argv, const struct sigaction old[PASSED], const sigset_t *mask,
			 int report)
{
	int why;

	for (size_t i = 0; i < PASSED; i++)
		sigaction(passed_on[i], &old[i], NULL);
	sigprocmask(SIG_SETMASK, mask, NULL);
	execvp(argv[0], argv);
	why = errno;
	if (write(report, &why, sizeof(why)) < 0)
		_exit(126);
	_exit(127);
}

static int not_started(const char *name, int why)
{
	return say_error(why == ENOENT ? 127 : 126, "%s cannot be started: %s", name,
			 strerror(why));
}

/* Until the child ends, calls `watch` every second. */
static void watch_child(void (*watch)(void *ctx), void *ctx)
{
	struct pollfd p = { .fd = (int)syscall(SYS_pidfd_open, child, 0), .events = POLLIN };
	int n = 0;

	while (p.fd >= 0 && ((n = poll(&p, 1, 1000)) == 0 || (n < 0 && errno == EINTR)))
		watch(ctx);
	if (p.fd >= 0)
		close(p.fd);
}

int child_run(char **argv, void (*watch)(void *ctx), void *ctx)
{
	struct sigaction old[PASSED];
	sigset_t all, mask;
	int report[2], why = 0, status = 0;

	if (pipe2(report, O_CLOEXEC))
		return not_started(argv[0], errno);
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &mask);
	listen_to_signals(old);
	child = fork();
	if (child == 0)
		become_child(argv, old, &mask, report[1]);
	if (child < 0)
		why = errno;
	sigprocmask(SIG_SETMASK, &mask, NULL);
	close(report[1]);
	if (child > 0 && read(report[0], &why, sizeof(why)) != sizeof(why))
		why = 0;
	close(report[0]);
	if (child > 0 && !why)
		watch_child(watch, ctx);
	while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	if (why)
		return not_started(argv[0], why);
	ended_by = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
	return ended_by ? 128 + ended_by : WEXITSTATUS(status);
}

int child_signal(void)
{
	return ended_by;
}

#if defined(__x86_64__)
#define OWN_MACHINE EM_X86_64
#else
#define OWN_MACHINE EM_AARCH64
#endif

bool run_program_path(const char *name, char path[PATH_MAX])
{
	const char *folders = getenv("PATH");

	if (strchr(name, '/'))
		return snprintf(path, PATH_MAX, "%s", name) < PATH_MAX;
	for (size_t n; folders && *folders; folders += n + (folders[n] == ':')) {
		n = strcspn(folders, ":");
		snprintf(path, PATH_MAX, "%.*s/%s", (int)n, folders, name);
		if (!access(path, X_OK))
			return true;
	}
	return false;
}

/* Replaces a script by the interpreter in its first line. */
static void follow_script(char path[PATH_MAX])
{
	char line[PATH_MAX] = "";
	int fd = file_open(path);
	ssize_t n = fd < 0 ? -1 : read(fd, line, sizeof(line) - 1);
	char *start;

	if (fd >= 0)
		close(fd);
	if (n < 3 || line[0] != '#' || line[1] != '!')
		return;
	start = line + 2 + strspn(line + 2, " \t");
	start[strcspn(start, " \t\r\n")] = 0;
	snprintf(path, PATH_MAX, "%s", start);
}

static bool has_interpreter(int fd, const Elf64_Ehdr *h)
{
	Elf64_Phdr p;

	for (unsigned i = 0; i < h->e_phnum; i++)
		if (pread(fd, &p, sizeof(p), (off_t)(h->e_phoff + i * sizeof(p))) == sizeof(p) &&
		    p.p_type == PT_INTERP)
			return true;
	return false;
}

/* Why the file's headers rule out the preload; NULL: they do not. */
static const char *look_at_file(const char *path)
{
	Elf64_Ehdr h;
	int fd = file_open(path);
	const char *why = NULL;

	if (fd < 0)
		return NULL;
	if (pread(fd, &h, sizeof(h), 0) != sizeof(h) || memcmp(h.e_ident, ELFMAG, SELFMAG))
		why = NULL;
	else if (h.e_ident[EI_CLASS] != ELFCLASS64 || h.e_machine != OWN_MACHINE)
		why = "is a program for another kind of processor than the library";
	else if (!has_interpreter(fd, &h))
		why = "is statically linked";
	close(fd);
	return why;
}

static const char *look_at_rights(const char *path)
{
	struct stat st;

	if (stat(path, &st))
		return NULL;
	if ((st.st_mode & S_ISUID && st.st_uid != geteuid()) ||
	    (st.st_mode & S_ISGID && st.st_mode & S_IXGRP && st.st_gid != getegid()))
		return "runs with another user's rights (setuid)";
	if (geteuid() && getxattr(path, "security.capability", NULL, 0) > 0)
		return "has capabilities of its own";
	return NULL;
}

static bool is_missing(const char *name, char *text, size_t room)
{
	char path[PATH_MAX];
	struct stat st;

	if (!run_program_path(name, path))
		errno = ENOENT;
	else if (stat(path, &st) || access(path, X_OK))
		;
	else if (S_ISDIR(st.st_mode))
		errno = EISDIR;
	else
		return false;
	snprintf(text, room, "%s cannot be started: %s", name, strerror(errno));
	return true;
}

bool run_program_obstacle(const char *name, char *text, size_t room)
{
	char path[PATH_MAX];
	const char *why;

	if (!run_program_path(name, path))
		return false;
	follow_script(path);
	why = look_at_rights(path);
	if (!why)
		why = look_at_file(path);
	if (why)
		snprintf(text, room, "%s %s, so the library is not loaded into it", path, why);
	return why;
}

bool run_program_fails(const char *name, char *text, size_t room)
{
	return is_missing(name, text, room) || run_program_obstacle(name, text, room);
}

char **run_program_python(char **command)
{
	const char *python = getenv("GPUMEMTRACE_PYTHON"), *name = command[0];
	size_t len = strlen(name), count;
	struct stat st;
	char **with;

	if (len < 4 || strcmp(name + len - 3, ".py") || stat(name, &st) || !S_ISREG(st.st_mode) ||
	    !access(name, X_OK))
		return command;
	count = need_count(command);
	with = need_new((count + 2) * sizeof(*with));
	with[0] = (char *)(python && *python ? python : "python3");
	memcpy(with + 1, command, count * sizeof(*with));
	return with;
}

/* ---- the libraries of this installation ---- */

/* Folders of the libraries, relative to this program's: a build folder, an installation. */
static const char *const places[] = { "", "../lib/", "../lib/gpumemtrace/", "build/" };

static bool own_folder(char folder[PATH_MAX])
{
	char *slash = proc_own_path(folder) ? strrchr(folder, '/') : NULL;

	if (slash)
		slash[1] = 0;
	return slash;
}

bool library_find(const char *name, char path[PATH_MAX])
{
	char folder[PATH_MAX], candidate[PATH_MAX + 64];

	if (!own_folder(folder))
		return false;
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		snprintf(candidate, sizeof(candidate), "%s%s%s", folder, places[i], name);
		if (realpath(candidate, path))
			return true;
	}
	return false;
}

static int prepend(const char *variable, const char *path)
{
	const char *old = getenv(variable);
	char *value;

	if (strpbrk(path, " :"))
		return say_unreadable(
			"%s: a path with a space or a colon cannot be preloaded; move it", path);
	if (asprintf(&value, "%s%s%s", path, old && *old ? ":" : "", old ? old : "") < 0)
		return say_unreadable("out of memory");
	setenv(variable, value, 1);
	free(value);
	return 0;
}

static int load(const char *variable, const char *name)
{
	char path[PATH_MAX];

	if (!library_find(name, path))
		return say_unreadable(
			"%s was not found beside this program or in ../lib: install gpumemtrace "
			"again (a build with SIMGPU=no has no simulated device)",
			name);
	return prepend(variable, path);
}

/* The simulated driver says whether it knows the card, and lists those it knows. It prints itself
 * what is wrong in the environment. Returns an exit code. */
static int check_card(const char *card)
{
	char text[1024], path[PATH_MAX];
	void *driver =
		library_find("libsimgpu.so", path) ? dlopen(path, RTLD_LAZY | RTLD_LOCAL) : NULL;
	int (*unknown)(const char *by, const char *card, char *text, size_t room) = NULL;
	int (*init)(unsigned) = NULL;

	if (driver) {
		unknown = (typeof(unknown))dlsym(driver, "simgpuCardUnknown");
		init = (typeof(init))dlsym(driver, "cuInit");
	}
	if (unknown && unknown("--sim", card, text, sizeof(text)))
		return say_usage("%s", text);
	return init && init(0) ? EXIT_USAGE : 0;
}

int preload_set(const char *card)
{
	bool simulated = card != NULL;
	int rc = simulated ? check_card(card) : 0;

	if (simulated && !rc)
		rc = load("LD_PRELOAD", "libsimgpu.so");
	if (!rc && simulated)
		rc = load("LD_LIBRARY_PATH", "simgpu");
	return rc ? rc : load("LD_PRELOAD", "libgpumemtrace.so");
}

int preload_link(const char *cuda)
{
	char lib[PATH_MAX + 8];
	int rc;

	snprintf(lib, sizeof(lib), "%s/lib", cuda);
	rc = prepend("LIBRARY_PATH", lib);
	if (!rc)
		rc = load("LIBRARY_PATH", "simgpu");
	return rc ? rc : load("LIBRARY_PATH", "simgpu/link");
}

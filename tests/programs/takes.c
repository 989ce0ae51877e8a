/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Takes device memory as its options say and ends: --blocks N of --mib N each, --base N MiB before
 * (the variable BASE does the same), --rest MS between two blocks. --ask: a block is a hundredth of
 * what is free. --fail N: ends with that exit code; --odd N: with 4, if --mib is no multiple of it.
 * --then WHAT comes after the first block: lock, naps, sleep or listen, for ever; work: is given to
 * the device for ever; prepare: 8 s of the processor's time; grow: takes 1 MiB more again and
 * again. Refused memory is exit code 1. A line is added to the file STARTS at each start.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

extern int cudaMalloc(void **p, size_t n) __attribute__((weak));
extern int cudaMemGetInfo(size_t *unused, size_t *total) __attribute__((weak));

extern int cudaMemset(void *p, int byte, size_t n) __attribute__((weak));

static void *first;

static const char *option(int argc, char **argv, const char *name, const char *otherwise)
{
	size_t len = strlen(name);

	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], name) && i + 1 < argc)
			return argv[i + 1];
		if (!strncmp(argv[i], name, len) && argv[i][len] == '=')
			return argv[i] + len + 1;
	}
	return otherwise;
}

static int take(size_t bytes)
{
	void *p = NULL;

	if (!cudaMalloc(&p, bytes)) {
		first = first ? first : p;
		return 0;
	}
	fprintf(stderr, "takes: %zu bytes were refused\n", bytes);
	return 1;
}

/* ---- what it does then ---- */

static void lock(void)
{
	pthread_mutex_t mine = PTHREAD_MUTEX_INITIALIZER;

	pthread_mutex_lock(&mine);
	pthread_mutex_lock(&mine);
}

static void nap(void)
{
	for (;;)
		usleep(20000);
}

static void rest_long(void)
{
	sleep(1000);
}

static void await(void)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	listen(fd, 1);
	accept(fd, NULL, NULL);
}

static void work(void)
{
	for (;;) {
		cudaMemset(first, 0, 1024);
		usleep(20000);
	}
}

static void prepare(void)
{
	time_t end = time(NULL) + 8;

	while (time(NULL) < end)
		;
}

static void grow(void)
{
	for (;;) {
		take(1 << 20);
		usleep(50000);
	}
}

static void go_on(const char *how)
{
	static const struct {
		const char *name;
		void (*act)(void);
	} acts[] = { { "lock", lock },	  { "naps", nap },  { "sleep", rest_long },
		     { "listen", await }, { "work", work }, { "prepare", prepare },
		     { "grow", grow } };

	for (size_t i = 0; i < sizeof(acts) / sizeof(acts[0]); i++)
		if (!strcmp(acts[i].name, how))
			acts[i].act();
}

static void note_start(int argc, char **argv)
{
	const char *path = getenv("STARTS");
	FILE *f = path ? fopen(path, "a") : NULL;

	for (int i = 1; f && i < argc; i++)
		fprintf(f, "%s ", argv[i]);
	if (f)
		fprintf(f, "%s\n", getenv("SIMGPU_CARD"));
	if (f)
		fclose(f);
}

int main(int argc, char **argv)
{
	const char *base = option(argc, argv, "--base", getenv("BASE") ? getenv("BASE") : "2");
	long blocks = atol(option(argc, argv, "--blocks", "1")), code;
	size_t bytes = strtoull(option(argc, argv, "--mib", "2"), NULL, 10) << 20, unused, total;
	long ms = atol(option(argc, argv, "--rest", "0"));
	struct timespec rest = { ms / 1000, ms % 1000 * 1000000 };

	note_start(argc, argv);
	if (!cudaMalloc)
		return 77;
	code = atol(option(argc, argv, "--fail", "0"));
	if (code) {
		fprintf(stderr, "takes: as it was wanted\n");
		return (int)code;
	}
	if ((bytes >> 20) % strtoull(option(argc, argv, "--odd", "1"), NULL, 10))
		return 4;
	if (strcmp(option(argc, argv, "--ask", "no"), "no") && !cudaMemGetInfo(&unused, &total))
		bytes = unused / 100;
	if (take(strtoull(base, NULL, 10) << 20))
		return 1;
	go_on(option(argc, argv, "--then", ""));
	for (long i = 0; i < blocks; i++) {
		nanosleep(&rest, NULL);
		if (take(bytes))
			return 1;
	}
	return 0;
}

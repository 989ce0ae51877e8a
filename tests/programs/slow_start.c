/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program whose threads hold its allocator's lock for a while when they start, as sanitizers' do
 * for a moment. It allocates on the device, which starts the recorder's thread, and forks at once:
 * says whether the child found the lock free.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

extern int cudaMalloc(void **p, size_t n) __attribute__((weak));

static pthread_mutex_t allocator = PTHREAD_MUTEX_INITIALIZER;
static int threads;
static volatile int began;

struct begin {
	void *(*run)(void *);
	void *arg;
};

static void *begin(void *arg)
{
	struct begin b = *(struct begin *)arg;

	pthread_mutex_lock(&allocator);
	began = 1;
	usleep(50000);
	pthread_mutex_unlock(&allocator);
	return b.run(b.arg);
}

/* Stands before the C library's for all who call it. */
int pthread_create(pthread_t *t, const pthread_attr_t *attr, void *(*run)(void *), void *arg)
{
	int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *) =
		(int (*)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *))dlsym(
			RTLD_NEXT, "pthread_create");
	struct begin *b = malloc(sizeof(*b));

	*b = (struct begin){ run, arg };
	threads++;
	real(t, attr, begin, b);
	while (!began)
		usleep(100);
	return 0;
}

int main(void)
{
	void *p;
	int status;
	pid_t pid;

	cudaMalloc(&p, 1000);
	pid = fork();
	if (!pid)
		_exit(pthread_mutex_trylock(&allocator) ? 1 : 0);
	waitpid(pid, &status, 0);
	printf("%d threads, %s\n", threads, status ? "locked for ever" : "free");
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program with an allocator of its own, whose lock no fork handler opens. It allocates on the
 * device until its recording has been thinned, and says how often another thread than its own
 * asked that allocator for memory: a fork at such a moment leaves it locked in the child.
 */
#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

extern int cudaMalloc(void **p, size_t n) __attribute__((weak));
extern int cudaFree(void *p) __attribute__((weak));

static unsigned others;
static __thread char mine __attribute__((tls_model("initial-exec")));

void *malloc(size_t n);
void *calloc(size_t n, size_t size);
void *realloc(void *p, size_t n);
void *__libc_malloc(size_t n);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t n);

static void note(void)
{
	if (!mine)
		__atomic_fetch_add(&others, 1, __ATOMIC_RELAXED);
}

/* They stand before the C library's for all who call them. */
void *malloc(size_t n)
{
	note();
	return __libc_malloc(n);
}

void *calloc(size_t n, size_t size)
{
	note();
	return __libc_calloc(n, size);
}

void *realloc(void *p, size_t n)
{
	note();
	return __libc_realloc(p, n);
}

int main(int count, char **words)
{
	struct stat before = { 0 }, now;
	unsigned thinned = 0;

	mine = 1;
	for (uint64_t i = 0; thinned < 2 && i < 40u << 20; i++) {
		void *p = NULL;

		if (cudaMalloc(&p, 512 + i * i * 7919 % 100003))
			return 1;
		cudaFree(p);
		if (i == 1000)
			others = 0; /* the recorder's thread has started */
		if (i % 500)
			continue;
		usleep(2000); /* the recorder must keep up */
		if (stat(words[count - 1], &now))
			continue;
		thinned += before.st_ino && now.st_ino != before.st_ino;
		before = now;
	}
	printf("thinned %u, asked by others %u\n", thinned, others);
	return 0;
}

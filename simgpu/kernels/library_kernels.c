/* SPDX-License-Identifier: Apache-2.0
 *
 * Kernels of the math libraries: each has a name and a number of addresses for parameters. They are
 * launched through the driver like any other; a variable of the thread passes the launch's time to
 * it. Any thread.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "../core/clock.h"
#include "../core/devices.h"
#include "kernels.h"

#define KIND	    SIM_KIND('L', 'K', 'E', 'R')
#define CUDA_KERNEL 4000 /* the version of cuLaunchKernel's ABI */

typedef int launch(void *fn, unsigned int gx, unsigned int gy, unsigned int gz, unsigned int bx,
		   unsigned int by, unsigned int bz, unsigned int shared, void *stream,
		   void **params, void **extra);

struct library_kernel {
	struct library_kernel *next;
	const char *function;
	int n;
	char *name;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct library_kernel *kernels; /* only grows */
static __thread const struct library_work *work;

static struct library_kernel *search(const char *function, int n)
{
	struct library_kernel *k = __atomic_load_n(&kernels, __ATOMIC_ACQUIRE);

	while (k && (k->function != function || k->n != n))
		k = k->next;
	return k;
}

static struct library_kernel *make(const char *function, int n)
{
	struct library_kernel *k = sim_handle(KIND, sizeof(*k));
	struct image *image = image_register(NULL);
	struct parameter p[LIBRARY_WORDS];

	if (!k || !image || asprintf(&k->name, "%s_kernel", function) < 0)
		return NULL;
	for (int i = 0; i < n; i++)
		p[i] = (struct parameter){ i * sizeof(uintptr_t), sizeof(uintptr_t) };
	image_says(image, k->name, p, n);
	k->function = function;
	k->n = n;
	k->next = kernels;
	kernel_register(k, k->name, image);
	__atomic_store_n(&kernels, k, __ATOMIC_RELEASE);
	return k;
}

static struct library_kernel *find_kernel(const char *function, int n)
{
	struct library_kernel *k = search(function, n);

	if (k)
		return k;
	pthread_mutex_lock(&lock);
	k = search(function, n);
	if (!k)
		k = make(function, n);
	pthread_mutex_unlock(&lock);
	return k;
}

static launch *looked_up;

static void look_up(void)
{
	driver_ask("cuLaunchKernel", (void **)&looked_up, CUDA_KERNEL, 0, NULL);
}

bool library_call(const char *function, const uintptr_t *words, int n, void *stream,
		  const struct library_work *what)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct library_kernel *k;
	void *params[LIBRARY_WORDS];

	pthread_once(&once, look_up);
	k = looked_up && n <= LIBRARY_WORDS && !sim_enter() ? find_kernel(function, n) : NULL;
	if (!k)
		return false;
	for (int i = 0; i < n; i++)
		params[i] = (void *)&words[i];
	work = what;
	looked_up(k, 1, 1, 1, 1, 1, 1, 0, stream, params, NULL);
	work = NULL;
	return true;
}

bool library_check(const void *fn)
{
	return sim_handle_check((void *)fn, KIND) != NULL;
}

/* `what` is NULL if a program launches such a kernel again as a graph's node: time not known. */
void library_run(void *stream, const struct library_work *what)
{
	uint64_t ns = what ? what->ns : time_of_kernel(1, 1);
	struct node_spec spec = { .type = NODE_KERNEL, .ns = ns };
	struct sim_stream *s;

	if (!what || !what->collective) {
		stream_work(stream, NODE_KERNEL, ns);
		return;
	}
	s = stream_find(stream);
	ctx_load(sim_device(), CTX_KERNELS, NULL);
	if (s && !stream_captures(stream, &spec))
		clock_work(s, &(struct work){ .ns = ns, .collective = true });
}

void library_launch(void *stream)
{
	library_run(stream, work);
}

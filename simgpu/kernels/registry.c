/* SPDX-License-Identifier: Apache-2.0
 *
 * Identifies kernels. Names are kept as registered. At a kernel's first launch its name is
 * demangled, by the program's own C++ library, and looked up in the table of families. Any thread.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include "kernels.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct kernel **table; /* open addressing, a power of two */
static size_t room, used;

static size_t slot_of(struct kernel **t, size_t n, const void *host)
{
	size_t i = ((uintptr_t)host * 0x9e3779b97f4a7c15ull) >> 20;

	for (i &= n - 1; t[i] && t[i]->host != host; i = (i + 1) & (n - 1))
		;
	return i;
}

static bool grow(void)
{
	size_t n = room ? 2 * room : 4096;
	struct kernel **t = calloc(n, sizeof(*t));

	if (!t)
		return false;
	for (size_t i = 0; i < room; i++)
		if (table[i])
			t[slot_of(t, n, table[i]->host)] = table[i];
	free(table);
	table = t;
	room = n;
	return true;
}

void kernel_register(const void *host, const char *name, struct image *image)
{
	struct kernel *k;
	size_t at;

	if (!host || !name)
		return;
	pthread_mutex_lock(&lock);
	if (2 * used < room || grow()) {
		at = slot_of(table, room, host);
		k = table[at] ? table[at] : calloc(1, sizeof(*k));
		if (k) {
			if (!table[at])
				used++;
			table[at] = k;
			k->host = host;
			k->name = name;
			k->seen = k->asked = false;
			k->image = image;
		}
	}
	pthread_mutex_unlock(&lock);
}

/* Frameworks load their C++ library privately, so its functions are not found by name alone. */
static char *readable(const char *name)
{
	static char *(*demangle)(const char *, char *, size_t *, int *);
	static bool asked;
	int status = 0;

	if (!asked) {
		void *library = dlopen("libstdc++.so.6", RTLD_LAZY | RTLD_NOLOAD);

		*(void **)&demangle = library ? dlsym(library, "__cxa_demangle") : NULL;
		asked = true;
	}
	return demangle ? demangle(name, NULL, NULL, &status) : NULL;
}

static void read_name(struct kernel *k)
{
	k->seen = true;
	k->spins = strstr(k->name, "11spin_kernelEl") != NULL;
	free(k->text);
	k->text = readable(k->name);
	if (!k->text)
		k->text = strdup(k->name);
	k->family = k->text ? family_find(k->text) : NULL;
	if (k->family && !k->family->parse(k))
		k->family = NULL;
}

struct kernel *kernel_find(const void *host)
{
	struct kernel *k = NULL;

	pthread_mutex_lock(&lock);
	if (room)
		k = table[slot_of(table, room, host)];
	if (k && !k->seen)
		read_name(k);
	pthread_mutex_unlock(&lock);
	return k;
}

bool kernel_launch(const void *host, const unsigned int grid[3], void **args)
{
	struct call c = { .args = args, .grid = { grid[0], grid[1], grid[2] } };

	c.k = args ? kernel_find(host) : NULL;
	if (!c.k)
		return false;
	contents_begin();
	return (c.k->family && c.k->family->launch(&c)) || signature_forget(&c);
}

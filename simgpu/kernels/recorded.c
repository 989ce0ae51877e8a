/* SPDX-License-Identifier: Apache-2.0
 *
 * Kernels that are recorded into a graph, or added to it: their arguments are copied, and the copy
 * is used whenever the graph is launched. The layout of a kernel's parameters is in its image;
 * without one, the name and the places on the stack show it. Any thread; must not read beyond the
 * stack.
 */
#include <string.h>
#include "kernels.h"

#define ARGS_MOST  64
#define LAST_MOST  4096	 /* bytes of the last argument on the stack... */
#define LARGE_MOST 32768 /* ...if it may be large */
#define KEPT_MOST  65536 /* of all */
#define ALIGNMENT  16

struct recorded {
	struct act act;
	struct launch launch;
	void *args[ARGS_MOST];
	size_t bytes;
	_Alignas(ALIGNMENT) char data[];
};

static void run(struct act *act, void *stream)
{
	struct recorded *r = (struct recorded *)act;
	bool done;

	(void)stream;
	contents_kept(r->data, r->bytes);
	done = kernel_launch(r->launch.fn, r->launch.grid, r->launch.args);
	if (!done && r->launch.args)
		contents_scan(r->data, r->bytes);
	contents_kept(NULL, 0);
	contents_wipe();
}

static size_t room_of(struct parameter p)
{
	return (p.size + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1);
}

struct act *kernel_keep(const struct launch *l)
{
	struct kernel *k = kernel_find(l->fn);
	const struct parameter *p = NULL;
	int n = k && l->args ? kernel_parameters(k, &p) : -1;
	struct recorded *r;
	size_t bytes = 0;

	for (int i = 0; i < n; i++)
		bytes += room_of(p[i]);
	r = (struct recorded *)act_new(sizeof(*r) + bytes + (n > 0 ? n : 0) * sizeof(void *), run);
	if (!r)
		return NULL;
	r->launch = *l;
	r->launch.args = n < 0 ? NULL : (void **)(r->data + bytes);
	r->bytes = bytes;
	for (int i = 0, at = 0; i < n; at += (int)room_of(p[i++])) {
		r->launch.args[i] = r->data + at;
		memcpy(r->data + at, l->args[i], p[i].size);
	}
	return &r->act;
}

const struct launch *kernel_kept(const struct act *act)
{
	return act && act->run == run ? &((const struct recorded *)act)->launch : NULL;
}

/* Copies byte by byte without the sanitizer: the padding between arguments belongs to the
 * caller. */
__attribute__((no_sanitize("address"))) static void copy(char *to, const char *from, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		*(volatile char *)(to + i) = from[i];
}

/* From the first of the arguments to the end of the last; false if not all are on the stack. */
static bool find_span(const struct kernel *k, void **args, int n, const char **from, size_t *bytes)
{
	size_t most = k->family && k->family->large ? LARGE_MOST : LAST_MOST, reach;
	const char *last = NULL;

	*from = NULL;
	for (int i = 0; i < n; i++) {
		const char *at = args[i];

		if (!contents_reach(at))
			return false;
		*from = !*from || at < *from ? at : *from;
		last = !last || at > last ? at : last;
	}
	reach = n ? contents_reach(last) : 0;
	*bytes = n ? last - *from + (reach < most ? reach : most) : 0;
	return *bytes <= KEPT_MOST;
}

void kernel_record(const void *host, void *stream, const unsigned int grid[3], void **args)
{
	const struct kernel *k = args ? kernel_find(host) : NULL;
	int n = k ? signature_count(k) : -1;
	struct recorded *r;
	const char *from;
	size_t bytes;

	if (n < 0 || n > ARGS_MOST || !find_span(k, args, n, &from, &bytes))
		return;
	r = (struct recorded *)act_new(sizeof(*r) + bytes, run);
	if (!r)
		return;
	r->launch.fn = host;
	memcpy(r->launch.grid, grid, sizeof(r->launch.grid));
	r->launch.args = r->args;
	r->bytes = bytes;
	copy(r->data, from, bytes);
	for (int i = 0; i < n; i++)
		r->args[i] = r->data + ((const char *)args[i] - from);
	capture_act(stream, &r->act);
}

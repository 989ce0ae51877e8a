/* SPDX-License-Identifier: Apache-2.0
 *
 * Kernels that are recorded into a graph: their arguments are kept as they lie on the stack, and
 * taken from there whenever the graph is launched. Any thread; must not read beyond the stack.
 */
#include <string.h>
#include "kernels.h"

#define ARGS_MOST  64
#define LAST_MOST  4096	 /* bytes of the argument that lies behind the others... */
#define LARGE_MOST 32768 /* ...where it may be large */
#define KEPT_MOST  65536 /* of all */

struct recorded {
	struct act act;
	const void *host;
	unsigned int grid[3];
	void *args[ARGS_MOST];
	size_t bytes;
	_Alignas(16) char data[];
};

static void run(struct act *act, void *stream)
{
	struct recorded *r = (struct recorded *)act;

	(void)stream;
	contents_kept(r->data, r->bytes);
	kernel_launch(r->host, r->grid, r->args);
	contents_kept(NULL, 0);
	contents_wipe();
}

/* Copies byte by byte without the sanitizer: the padding between arguments belongs to the
 * caller. */
__attribute__((no_sanitize("address"))) static void copy(char *to, const char *from, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		*(volatile char *)(to + i) = from[i];
}

/* From the first of the arguments to behind the last; false if they are not all on the stack. */
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
	r->host = host;
	memcpy(r->grid, grid, sizeof(r->grid));
	r->bytes = bytes;
	copy(r->data, from, bytes);
	for (int i = 0; i < n; i++)
		r->args[i] = r->data + ((const char *)args[i] - from);
	capture_act(stream, &r->act);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Marks the memory that a kernel may have written as unknown, if the kernel is not computed. Its
 * readable name ends with its parameter types. Read-only pointers and numbers are skipped. Every
 * other address is forgotten, also inside structures. Any thread; must not read beyond the
 * arguments.
 */
#include <string.h>
#include "kernels.h"

#define ARGS_MOST  64
#define BYTES_MOST 4096 /* of one argument */

/* The parameter list in brackets at the end of the name. */
static struct text parameters(const struct kernel *k)
{
	size_t n = k->text ? strlen(k->text) : 0;
	int depth = 0;

	if (!n || k->text[n - 1] != ')')
		return (struct text){ 0 };
	for (size_t i = n; i-- > 0;) {
		depth += k->text[i] == ')';
		depth -= k->text[i] == '(';
		if (!depth)
			return (struct text){ k->text + i, n - i };
	}
	return (struct text){ 0 };
}

static bool ends(struct text t, const char *with)
{
	size_t n = strlen(with);

	return t.n >= n && !memcmp(t.at + t.n - n, with, n);
}

/* Most bytes of an argument. Sizes of structures are not known, but the next argument ends one. */
static size_t room_of(const struct call *c, int i, int n)
{
	uintptr_t at = (uintptr_t)c->args[i];
	size_t most = contents_reach(c->args[i]);

	most = most < BYTES_MOST ? most : BYTES_MOST;
	for (int j = 0; j < n; j++) {
		uintptr_t other = (uintptr_t)c->args[j];

		if (other > at && other - at < most)
			most = other - at;
	}
	return most;
}

static void forget(const struct call *c, struct text t, int i, int n)
{
	if (ends(t, " const*"))
		return;
	if (ends(t, "*"))
		sim_forget(*(void **)c->args[i]);
	else if (!text_type(t))
		contents_scan(c->args[i], room_of(c, i, n));
}

int signature_count(const struct kernel *k)
{
	struct text all = parameters(k);
	int n = 0;

	if (!all.at || all.n == 2)
		return all.at ? 0 : -1;
	while (n < ARGS_MOST && text_argument_of(all, "(", n).at)
		n++;
	return n;
}

bool signature_forget(const struct call *c)
{
	struct text all = parameters(c->k), t;
	int n;

	if (!all.at || !contents_any())
		return all.at != NULL;
	n = signature_count(c->k);
	for (int i = 0; i < n; i++) {
		t = text_argument_of(all, "(", i);
		forget(c, t, i, n);
	}
	return true;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The exported functions of each loaded object, about 110,000 in PyTorch's, are read once. Binary
 * search finds the calls within each among the return addresses of all stacks, a few thousand.
 */
#include "names.h"

#include "../../format/record.h"
#include "../base/elfsym.h"
#include "../base/forkgate.h"
#include "../base/os.h"
#include "intern_stack.h"

#include <string.h>

#define CALLS_MOST 16384u
#define NAME_MOST  2048u

struct call {
	uint64_t address; /* where it returns to: the byte before is in the function */
	uint64_t start;
	const char *name; /* of the function found so far in the present object, or NULL */
};

struct calls {
	bool (*emit)(const struct gmt_def *d);
	struct call *items; /* by address */
	uint32_t count, last_id;
};

/* The first call that returns to `address` or after it. */
static uint32_t first_from(const struct calls *c, uint64_t address)
{
	uint32_t low = 0, high = c->count;

	while (low < high) {
		uint32_t middle = (low + high) / 2;

		if (c->items[middle].address < address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static void add_call(void *ctx, uint64_t address)
{
	struct calls *c = ctx;
	uint32_t at = first_from(c, address);

	if (c->count == CALLS_MOST || (at < c->count && c->items[at].address == address))
		return;
	memmove(&c->items[at + 1], &c->items[at], (c->count - at) * sizeof(c->items[0]));
	c->items[at] = (struct call){ .address = address };
	c->count++;
}

/* Chooses for each call the function that begins last before it, and of its names the last in
 * order, as the viewer does with the object's file. */
static void try_function(void *ctx, uint64_t start, uint64_t size, const char *name)
{
	struct calls *c = ctx;

	for (uint32_t i = first_from(c, start + 1);
	     i < c->count && c->items[i].address - start <= size; i++) {
		struct call *call = &c->items[i];

		if (!call->name || start > call->start ||
		    (start == call->start && strcmp(name, call->name) > 0)) {
			call->start = start;
			call->name = name;
		}
	}
}

static void define(struct calls *c, const struct call *call)
{
	struct {
		struct gmt_def_function head;
		char name[NAME_MOST];
	} payload = { .head = { .address = call->address } };
	size_t len = strnlen(call->name, NAME_MOST + 1);
	struct gmt_def d = { .kind = GMT_DEF_FUNCTION,
			     .len = (uint32_t)(sizeof(payload.head) + len),
			     .payload = &payload };

	if (len > NAME_MOST) /* a part of it cannot be demangled */
		return;
	memcpy(payload.name, call->name, len);
	d.id = ++c->last_id;
	c->emit(&d);
}

static int name_object(struct dl_phdr_info *info, size_t size, void *ctx)
{
	struct calls *c = ctx;

	(void)size;
	elfsym_functions(info, try_function, c);
	for (uint32_t i = 0; i < c->count; i++) {
		if (c->items[i].name)
			define(c, &c->items[i]);
		c->items[i].name = NULL; /* the object might be gone after this */
	}
	return 0;
}

void names_emit(bool (*emit)(const struct gmt_def *d))
{
	struct calls c = { .emit = emit };

	if (stack_nodes())
		c.items = os_map(CALLS_MOST * sizeof(*c.items));
	if (!c.items)
		return;
	stack_native_each(add_call, &c);
	forkgate_objects(name_object, &c);
	os_unmap(c.items, CALLS_MOST * sizeof(*c.items));
}

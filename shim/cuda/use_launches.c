/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A launch can touch the memory that its parameters name: every word of them that is an address in
 * device memory is a place. Only words that the driver copies too are read. Application threads,
 * any lock held: no lock, no allocation.
 */
#include "use_launches.h"

#include "../../format/uses.h"
#include "../base/config.h"
#include "../rings/thread.h"
#include "cuda_device.h"
#include "hook.h"
#include "kernel_layouts.h"
#include "known.h"
#include "offset_tables.h"

#include <string.h>

/* Keys in `extra` of a launch whose parameters are one buffer. */
enum { EXTRA_END = 0, EXTRA_POINTER = 1, EXTRA_SIZE = 2 };

static uint32_t captures;

bool launch_wanted(void)
{
	return gmt_config.uses && gmt_recording();
}

void launch_capture_begins(void)
{
	__atomic_add_fetch(&captures, 1, __ATOMIC_RELAXED);
}

void launch_capture_ends(void)
{
	uint32_t running = __atomic_load_n(&captures, __ATOMIC_RELAXED);

	while (running && !__atomic_compare_exchange_n(&captures, &running, running - 1, false,
						       __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
}

static bool is_captured(uint64_t stream)
{
	return OS_UNLIKELY(__atomic_load_n(&captures, __ATOMIC_RELAXED)) &&
	       device_capturing(stream);
}

/* ---- places into events ---- */

void places_begin(struct places *p, const struct gmt_event *e, const void *frame)
{
	p->event = *e;
	p->frame = frame;
	p->count = 0;
	p->more = p->unread = false;
}

static void places_flush(struct places *p)
{
	struct gmt_event e = p->event;

	if (p->more)
		e.flags |= GMT_FLAG_MORE;
	gmt_capture_from(&e, p->frame);
	p->event.addr = p->event.size = p->event.arg0 = 0;
	p->event.arg1 = (uint32_t)p->event.arg1;
	p->count = 0;
	p->more = true;
}

void places_add(struct places *p, uint64_t address)
{
	uint64_t first = p->event.addr;

	if (p->count && address / GMT_USE_UNIT == first / GMT_USE_UNIT)
		return;
	if (p->count && (p->count == GMT_USE_PLACES || !gmt_use_is_near(first, address)))
		places_flush(p);
	if (p->count)
		gmt_use_put(&p->event, p->count, address);
	else
		p->event.addr = address;
	p->count++;
}

void places_end(struct places *p)
{
	if (p->count)
		places_flush(p);
}

/* Adds the known addresses among a parameter's words. Often an address is repeated in a row. */
static void add_words(struct places *p, const char *from, unsigned words)
{
	uint64_t word, last = 0;

	for (unsigned i = 0; i < words; i++) {
		memcpy(&word, from + 8 * i, 8);
		if (word != last && known_is(word))
			places_add(p, last = word);
	}
}

static void add_part(struct places *p, const char *from, unsigned words)
{
	unsigned table = offset_table_words(from, words);

	add_words(p, from + 8 * table, words - table);
}

/* False if the parameter that ends there is not a reduction's. */
static bool add_reduction(struct places *p, const char *end)
{
	const char *from;
	unsigned used = reduction_words(end, &from);

	for (unsigned i = 0; used >> i; i++)
		add_words(p, from + 8 * i, used >> i & 1);
	return used;
}

static const char *packed_parameters(void **extra, size_t *size)
{
	const char *buffer = NULL;

	for (*size = 0; *extra != (void *)EXTRA_END; extra += 2) {
		if (*extra == (void *)EXTRA_POINTER)
			buffer = extra[1];
		else if (*extra == (void *)EXTRA_SIZE && extra[1])
			*size = *(const size_t *)extra[1];
		else if (*extra != (void *)EXTRA_SIZE)
			break;
	}
	return buffer;
}

/* Adds the addresses in the lists that this launch uses. */
static void add_lists(struct places *p, const struct tensor_lists *l, const char *parameter,
		      const unsigned grid[2])
{
	unsigned count = tensor_lists_count(l, parameter, grid);

	for (unsigned i = 0; i < l->lists; i++)
		add_words(p, parameter + 8 * i * l->most, count);
	if (l->steps)
		add_words(p, parameter + l->steps, count);
}

void places_add_kernel(struct places *p, const struct kernel *k, const unsigned grid[2],
		       void **params, void **extra)
{
	const char *buffer = NULL, *from;
	size_t size = 0;

	if (!params && extra)
		buffer = packed_parameters(extra, &size);
	for (unsigned i = 0; i < k->count && (params || buffer); i++) {
		const struct kernel_part *part = &k->parts[i];

		if (!params && part->offset + 8u * part->words > size)
			continue;
		from = params ? (const char *)params[part->parameter] + part->skip
			      : buffer + part->offset;
		if (k->lists.lists && part->parameter == k->lists.parameter)
			add_lists(p, &k->lists, from, grid);
		else if (!k->reduces || part->words < REDUCTION_WORDS + 2 ||
			 !add_reduction(p, from + 8 * part->words))
			add_part(p, from, part->words);
	}
}

/* ---- calls of the hooks ---- */

static struct gmt_event begin_event(enum gmt_kind kind, uint64_t stream)
{
	struct gmt_event e = { .kind = (uint16_t)kind, .stream = stream, .device = -1 };

	thread_node_now(thread_self(), (uintptr_t)__builtin_frame_address(0), &e);
	return e;
}

/* The recorder itself launches nothing, so a launch inside another hook is the program's. */
void launch_kernel(const struct user *u, const void *function, unsigned x, unsigned y,
		   uint64_t stream, void **params, void **extra)
{
	struct gmt_event e;
	struct places p;
	struct kernel *k;

	if (is_captured(stream))
		return;
	k = kernel_of(function);
	e = begin_event(GMT_USE, stream);
	if (k)
		e.arg1 = kernel_name(k);
	if (OS_UNLIKELY(!k || !k->is_read)) {
		gmt_capture_from(&e, u->frame);
		return;
	}
	places_begin(&p, &e, u->frame);
	places_add_kernel(&p, k, (const unsigned[]){ x, y }, params, extra);
	places_end(&p);
}

void launch_transfer(const struct user *u, enum gmt_transfer what, uint64_t address, uint64_t bytes,
		     uint64_t stream)
{
	struct gmt_event e;

	if (!bytes || !known_is(address) || is_captured(stream))
		return;
	e = begin_event(GMT_TRANSFER, stream);
	e.addr = address;
	e.size = bytes;
	e.arg0 = what;
	e.arg1 = call_string(u->name_id, u->function, strlen(u->function));
	gmt_capture_from(&e, u->frame);
}

void launch_graph(const struct user *u, uint64_t graph, uint64_t stream)
{
	struct gmt_event e;

	if (is_captured(stream))
		return;
	e = begin_event(GMT_GRAPH_LAUNCH, stream);
	e.addr = graph;
	gmt_capture_from(&e, u->frame);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes events of CUPTI's callbacks, before and after each call. If a hook of ours sees the same
 * call, only the outermost of the two records it. Application threads, any lock held; calls no
 * function of CUDA.
 */
#include "cupti_calls.h"

#include "../format/record.h"
#include "../shim/capture.h"

#include <string.h>

#define NONE 255

struct call {
	uint16_t id;
	uint16_t kind;
	uint8_t domain, memory;
	uint8_t address, is_out;
	uint8_t size, height;
	uint8_t stream, arg0, arg1;
	const char *name;
};

#define AT(word)	    word, 0
#define OUT(word)	    word, 1
#define ONE(word)	    word, NONE
#define ROWS(pitch, height) pitch, height

static const struct call calls[] = {
#define CALL_(domain, id, name, kind, memory, address, is_out, size, height, stream, arg0, arg1) \
	{ id,                                                                                    \
	  GMT_##kind,                                                                            \
	  CUPTI_DOMAIN_##domain,                                                                 \
	  GMT_MEM_##memory,                                                                      \
	  address,                                                                               \
	  is_out,                                                                                \
	  size,                                                                                  \
	  height,                                                                                \
	  stream,                                                                                \
	  arg0,                                                                                  \
	  arg1,                                                                                  \
	  #name },
#define CALL(domain, id, name, kind, memory, address, size, stream, arg0, arg1) \
	CALL_(domain, id, name, kind, memory, address, size, stream, arg0, arg1)
#include "callbacks.def"
};

#define CALLS (sizeof(calls) / sizeof(calls[0]))

int (*cupti_device_of)(void *context, uint32_t *device);

void cupti_calls_each(void (*fn)(int domain, uint32_t id, void *ctx), void *ctx)
{
	for (size_t i = 0; i < CALLS; i++)
		fn(calls[i].domain, calls[i].id, ctx);
}

static const struct call *find_call(int domain, uint32_t id)
{
	for (size_t i = 0; i < CALLS; i++)
		if (calls[i].id == id && calls[i].domain == domain)
			return &calls[i];
	return NULL;
}

/* Whether the call frees: its event is made before the call, that of any other call after it. */
static bool is_end(const struct call *c)
{
	return c->kind == GMT_MEM_FREE || c->kind == GMT_VA_RELEASE ||
	       c->kind == GMT_PHYS_RELEASE || c->kind == GMT_UNMAP;
}

static uint64_t word(const struct cupti_data *d, uint8_t at)
{
	return at == NONE ? 0 : d->params[at];
}

static uint64_t size_of(const struct call *c, const struct cupti_data *d, bool failed)
{
	if (c->height == NONE)
		return word(d, c->size);
	/* The pitch of a pitched allocation is known only after the call. After a failure the
	 * requested width, the next parameter, is used. */
	return (failed ? d->params[c->size + 1] : *(const uint64_t *)d->params[c->size]) *
	       d->params[c->height];
}

/* "cudaMalloc_v3020" is cudaMalloc; "cuMemAlloc_v2" is a name of its own. */
static uint32_t name_of(const struct call *c)
{
	const char *version = c->domain == CUPTI_DOMAIN_RUNTIME ? strrchr(c->name, '_') : NULL;

	return gmt_string(c->name, version ? (size_t)(version - c->name) : strlen(c->name));
}

static int device_of(const struct cupti_data *d)
{
	uint32_t device;

	if (!cupti_device_of || !d->context || cupti_device_of(d->context, &device))
		return -1;
	return (int)device;
}

static struct gmt_event make(const struct call *c, const struct cupti_data *d, int rc)
{
	bool is_alloc = c->kind == GMT_MEM_ALLOC || c->kind == GMT_PHYS_CREATE;
	struct gmt_event e = {
		.kind = rc && is_alloc ? GMT_MEM_FAIL
			: rc	       ? 0
				       : c->kind,
		.flags = GMT_FLAG_CUPTI,
		.size = size_of(c, d, rc != 0),
		.arg0 = c->arg0 == NONE ? c->memory : word(d, c->arg0),
		.arg1 = rc ? (uint64_t)rc : word(d, c->arg1),
		.stream = word(d, c->stream),
		.name = name_of(c),
		.device = is_alloc ? device_of(d) : -1,
	};

	if (!rc)
		e.addr = c->is_out ? *(const uint64_t *)d->params[c->address]
				   : d->params[c->address];
	if (!rc && !e.addr)
		e.kind = 0;
	return e;
}

static void record(struct gmt_event *e)
{
	if (e->kind)
		gmt_capture(e);
}

/*
 * A stack address in the frame of the call, by which hooks recognize an abandoned call. This
 * callback's own frame will not do, because it ends before the call does. The call's parameters and
 * CUPTI's data lie in the call's frame.
 */
static uintptr_t place_of(const struct cupti_data *d)
{
	uintptr_t here = (uintptr_t)__builtin_frame_address(0), at = here;
	uintptr_t in_frame[] = { (uintptr_t)d->params, (uintptr_t)d->correlation };

	for (int i = 0; i < 2; i++)
		if (in_frame[i] > at && in_frame[i] - here < 65536)
			at = in_frame[i];
	return at;
}

static void enter(const struct call *c, const struct cupti_data *d)
{
	int depth = gmt_enter_at(place_of(d));
	struct gmt_event *e;

	*d->correlation = (uint64_t)depth + 1;
	if (depth > 0)
		gmt_saw_nested();
	e = depth > 0 || !is_end(c) ? NULL : gmt_held();
	if (!e)
		return;
	*e = make(c, d, 0);
	if (e->kind)
		gmt_hold(e);
}

static void end(const struct cupti_data *d)
{
	struct gmt_event *e = gmt_held();

	if (!e || !e->seq)
		return;
	gmt_settle(e, d->result ? *d->result : 0);
	e->seq = 0;
}

static void leave(const struct call *c, const struct cupti_data *d)
{
	uint64_t depth = *d->correlation;
	struct gmt_event e;

	if (!depth)
		return; /* begun before we listened */
	*d->correlation = 0;
	if (depth == 1 && is_end(c))
		end(d);
	if (depth == 1 && !is_end(c)) {
		e = make(c, d, d->result ? *d->result : 0);
		if (gmt_had_nested())
			e.flags |= GMT_FLAG_NESTED;
		record(&e);
	}
	gmt_leave();
}

void cupti_call(void *user, int domain, uint32_t id, const struct cupti_data *data)
{
	const struct call *c;

	(void)user;
	if (!data || !data->correlation || !data->params)
		return;
	c = find_call(domain, id);
	if (!c)
		return;
	if (data->site == CUPTI_SITE_ENTER && gmt_recording())
		enter(c, data);
	else if (data->site == CUPTI_SITE_EXIT)
		leave(c, data);
}

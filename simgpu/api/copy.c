/* SPDX-License-Identifier: Apache-2.0
 *
 * The driver's copies and fills of boxes of rows. The addresses decide the direction, as with
 * unified addressing. On a recording stream they become a node and move nothing. Otherwise the
 * bytes move at once; the clock computes when the work would end (../core/clock.h).
 */
#include "../core/clock.h"
#include "copy.h"

struct moving {
	struct act act;
	struct box box;
};

static int copy_row(void *dst, const void *src, size_t bytes)
{
	int result = sim_copy(dst, src, bytes);

	if (!result && bytes && sim_is_device_ptr(src) && !sim_is_device_ptr(dst))
		value_read(dst, src, bytes);
	return result;
}

static int move(const struct box *b)
{
	int result = SIM_OK;

	for (size_t z = 0; !result && z < b->depth; z++)
		for (size_t y = 0; !result && y < b->height; y++) {
			char *to = (char *)b->dst + z * b->dslice + y * b->dpitch;
			const char *from = (const char *)b->src + z * b->sslice + y * b->spitch;

			result = b->src || !b->unit
					 ? copy_row(to, from, b->width)
					 : sim_fill_pattern(to, b->value, b->unit, b->width);
		}
	return result;
}

/* Whether a graph's launch can use memory: host memory that is not pinned may be gone by then. */
static bool is_there(const void *p)
{
	struct host_range range;

	return sim_is_device_ptr(p) || host_find(p, &range);
}

static void run(struct act *act, void *stream)
{
	const struct box *b = &((const struct moving *)act)->box;

	(void)stream;
	if (is_there(b->dst) && (b->unit || is_there(b->src)))
		move(b);
}

struct act *box_act(const struct box *b)
{
	struct moving *m = (struct moving *)act_new(sizeof(*m), run);

	if (!m)
		return NULL;
	m->box = *b;
	return &m->act;
}

const struct box *box_of(const struct act *act)
{
	return act && act->run == run ? &((const struct moving *)act)->box : NULL;
}

static size_t bytes_of(const struct box *b)
{
	return b->width * b->height * b->depth;
}

uint64_t box_time(const struct box *b)
{
	return b->unit ? time_of_bytes((double)bytes_of(b))
		       : work_of_copy(b->dst, b->src, bytes_of(b)).ns;
}

int box_copy(const struct box *b, void *stream, bool async)
{
	struct node_spec spec = { .type = NODE_MEMCPY, .ns = box_time(b) };
	int result = async ? stream_valid(stream) : capture_forbids();

	if (!result && async && stream_captures(stream, &spec)) {
		capture_act(stream, box_act(b));
		return SIM_OK;
	}
	if (!result && async)
		result = capture_legacy(stream);
	if (!result)
		result = move(b);
	if (!result)
		work_copy(stream, b->dst, b->src, bytes_of(b), !async);
	return result;
}

int box_fill(const struct box *b, void *stream)
{
	int result = stream_valid(stream);

	if (!result)
		result = capture_legacy(stream);
	if (result)
		return result;
	if (!stream_work(stream, NODE_MEMSET, box_time(b)))
		return move(b);
	capture_act(stream, box_act(b));
	return SIM_OK;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies whose ranges are in structures or arrays. Application threads, any lock held.
 */
#include "cuda_abi.h"
#include "use_launches.h"

/* Bytes from the first to the last of `rows` rows in each plane of `height` rows. */
static uint64_t span(size_t pitch, size_t height, size_t width, size_t rows, size_t planes)
{
	return rows && planes ? pitch * (height * (planes - 1) + rows - 1) + width : 0;
}

static uint64_t side2d_address(const struct cuda_side2d *s)
{
	if (s->type == CUDA_MEMORY_ARRAY)
		return 0;
	return (s->type == CUDA_MEMORY_HOST ? s->host : s->device) + s->y * s->pitch + s->x;
}

static void side2d(const struct user *u, enum gmt_transfer what, const struct cuda_side2d *s,
		   const struct cuda_copy2d *c, uint64_t stream)
{
	launch_transfer(u, what, side2d_address(s), span(s->pitch, 0, c->width, c->height, 1),
			stream);
}

void launch_copy2d(const struct user *u, const struct cuda_copy2d *c, uint64_t stream)
{
	side2d(u, GMT_TRANSFER_SOURCE, &c->source, c, stream);
	side2d(u, GMT_TRANSFER_TARGET, &c->target, c, stream);
}

uint64_t copy_side_address(const struct cuda_side3d *s)
{
	if (s->type == CUDA_MEMORY_ARRAY)
		return 0;
	return (s->type == CUDA_MEMORY_HOST ? s->host : s->device) +
	       (s->z * s->height + s->y) * s->pitch + s->x;
}

static void side3d(const struct user *u, enum gmt_transfer what, const struct cuda_side3d *s,
		   const struct cuda_copy3d *c, uint64_t stream)
{
	launch_transfer(u, what, copy_side_address(s),
			span(s->pitch, s->height, c->width, c->height, c->depth), stream);
}

void launch_copy3d(const struct user *u, const struct cuda_copy3d *c, uint64_t stream)
{
	side3d(u, GMT_TRANSFER_SOURCE, &c->source, c, stream);
	side3d(u, GMT_TRANSFER_TARGET, &c->target, c, stream);
}

void launch_copies(const struct user *u, const uint64_t *to, const uint64_t *from,
		   const size_t *bytes, size_t count, uint64_t stream)
{
	for (size_t i = 0; i < count; i++) {
		launch_transfer(u, GMT_TRANSFER_SOURCE, from[i], bytes[i], stream);
		launch_transfer(u, GMT_TRANSFER_TARGET, to[i], bytes[i], stream);
	}
}

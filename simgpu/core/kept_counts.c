/* SPDX-License-Identifier: Apache-2.0
 *
 * Counts that an unknown kernel, such as Triton's, might have changed. Inference engines fill them
 * with ones ("tokens per request"), let such a kernel correct them in place, and read them back. If
 * they read zeros, they would wait for ever. So memory that holds one small positive number
 * throughout keeps it, as an assumption, through the next few kernels. So do small numbers that the
 * host has just copied there, such as lengths and positions, because kernels usually only read
 * those. Later the memory has probably been reused for other tensors. Any thread.
 */
#include "contents.h"
#include "extents.h"

#define BYTES_MOST    512 /* PyTorch's smallest block */
#define COUNT_MOST    65535
#define SLOTS	      16
#define LAUNCHES_MOST 16 /* from the first such kernel to the last */
#define COPIES	      32
#define COPY_LAUNCHES 64 /* from the copy to the last such kernel */

static uint32_t launches;
static __thread struct slot { /* of this thread */
	uintptr_t addr;
	uint32_t launch;
} slots[SLOTS];
static __thread struct copy { /* from the host, by this thread */
	uintptr_t addr;
	size_t bytes;
	uint32_t launch;
} copies[COPIES];
static __thread unsigned copy_next;

void counts_launch(void)
{
	__atomic_fetch_add(&launches, 1, __ATOMIC_RELAXED);
}

static bool are_small(const uint32_t *data, size_t bytes)
{
	for (size_t i = 0; i < bytes / sizeof(*data); i++)
		if (data[i] > COUNT_MOST)
			return false;
	return bytes && bytes % sizeof(*data) == 0;
}

void counts_copied(uintptr_t addr, const void *data, size_t bytes)
{
	if (bytes <= BYTES_MOST - addr % BYTES_MOST && !((uintptr_t)data % sizeof(uint32_t)) &&
	    are_small(data, bytes))
		copies[copy_next++ % COPIES] =
			(struct copy){ addr, bytes, __atomic_load_n(&launches, __ATOMIC_RELAXED) };
}

/* Bytes of small numbers that the host has just copied to addr and that are still known, else 0.
 * Only the latest copy to addr counts. */
static size_t copied_numbers(uintptr_t addr, uint32_t *data, unsigned char *states)
{
	const uint32_t now = __atomic_load_n(&launches, __ATOMIC_RELAXED);

	for (unsigned i = 1; i <= COPIES; i++) {
		const struct copy *c = &copies[(copy_next - i) % COPIES];
		size_t known = 0;

		if (c->addr != addr)
			continue;
		contents_read((void *)addr, data, states, c->bytes);
		while (known < c->bytes && states[known] > CONTENTS_GUESS)
			known++;
		return known == c->bytes && now - c->launch <= COPY_LAUNCHES &&
				       are_small(data, known)
			       ? known
			       : 0;
	}
	return 0;
}

/* Length in bytes of the equal numbers at addr, of 4 or of 8 bytes each; 0 if they are no counts.
 * Known numbers after them belong to an earlier tensor. */
static size_t same_numbers(uintptr_t addr, uint32_t *data, unsigned char *states)
{
	const size_t most = BYTES_MOST - addr % BYTES_MOST;
	size_t known = 0, n = 0, wide;

	contents_read((void *)addr, data, states, most);
	while (known < most && states[known] > CONTENTS_GUESS)
		known++;
	known /= sizeof(*data);
	if (!known || !data[0] || data[0] > COUNT_MOST)
		return 0;
	wide = known > 1 && !data[1];
	while (n < known && data[n] == (wide && n % 2 ? 0 : data[0]))
		n++;
	return (wide ? n - n % 2 : n) * sizeof(*data);
}

/* The slot of this address, or the one that was used longest ago. */
static struct slot *slot_of(uintptr_t addr)
{
	struct slot *oldest = &slots[0];

	for (size_t i = 0; i < SLOTS; i++) {
		if (slots[i].addr == addr)
			return &slots[i];
		if ((int32_t)(slots[i].launch - oldest->launch) < 0)
			oldest = &slots[i];
	}
	return oldest;
}

/* Whether to assume numbers: known ones from now on, assumed ones for LAUNCHES_MOST launches. */
static bool is_recent(uintptr_t addr, bool known)
{
	const uint32_t now = __atomic_load_n(&launches, __ATOMIC_RELAXED);
	struct slot *s = slot_of(addr);

	if (known)
		*s = (struct slot){ addr, now };
	return s->addr == addr && now - s->launch <= LAUNCHES_MOST;
}

void counts_may_write(uintptr_t addr)
{
	uint32_t data[BYTES_MOST / sizeof(uint32_t)];
	unsigned char states[BYTES_MOST];
	size_t n = 0, copied = 0;

	if (!contents_any())
		return;
	if (extents_near(addr) && addr % sizeof(*data) == 0 && assumes_anything()) {
		copied = copied_numbers(addr, data, states);
		n = copied ? copied : same_numbers(addr, data, states);
	}
	sim_forget((const void *)addr);
	if (!n || (!copied && !is_recent(addr, states[0] != CONTENTS_KEPT)))
		return;
	for (size_t i = 0; i < n; i++)
		states[i] = CONTENTS_KEPT;
	contents_store((void *)addr, data, states, n);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The opcodes of a pickle that make a value which holds no others. */
#include <string.h>

#include "pickle_machine.h"

bool pickle_do_value(struct machine *m)
{
	return machine_push(m, (struct pickle_value){ .type = (uint16_t)m->op->n,
						      .form = (uint16_t)m->op->form });
}

bool pickle_do_bool(struct machine *m)
{
	return machine_push(m, (struct pickle_value){ .type = PICKLE_BOOL, .number = m->op->n });
}

/* Sizes, streams and addresses come again and again: one value is enough for them. */
static bool push_int(struct machine *m, int64_t n)
{
	struct pickle_value v = { .type = PICKLE_INT, .number = n };
	uint32_t *known = &m->ints[(uint64_t)n * 0x9e3779b97f4a7c15u >> (64 - PICKLE_INTS)];

	if (*known && m->p->values[*known - 1].number == n) {
		machine_push_ref(&m->stack, *known - 1);
		return true;
	}
	*known = (uint32_t)m->p->count + 1;
	return machine_push(m, v);
}

static bool push_beyond(struct machine *m, uint64_t n)
{
	return machine_push(m, (struct pickle_value){ .type = PICKLE_INT,
						      .form = PICKLE_BEYOND,
						      .number = (int64_t)n });
}

/* Only the longest has a sign. */
bool pickle_do_int(struct machine *m)
{
	uint64_t n;

	return machine_take(m, m->op->n, &n) &&
	       push_int(m, m->op->n == 4 ? (int32_t)n : (int64_t)n);
}

/* Two's complement of any length: at most 64 bits of it, signed or not. */
static bool long_of(struct machine *m, uint64_t len)
{
	uint64_t low, top = 0;
	unsigned kept = len < 8 ? (unsigned)len : 8;

	if (len > 9)
		return machine_fail(m, "a number of more than 64 bits");
	if (!machine_take(m, kept, &low) || !machine_take(m, (unsigned)(len - kept), &top))
		return false;
	if (top && (top != 0xff || !(low >> 63)))
		return machine_fail(m, "a number of more than 64 bits");
	if (kept && kept < 8 && low >> (8 * kept - 1) & 1)
		low |= UINT64_MAX << 8 * kept;
	return len > 8 && !top && low >> 63 ? push_beyond(m, low) : push_int(m, (int64_t)low);
}

bool pickle_do_long(struct machine *m)
{
	uint64_t len;

	return machine_take(m, m->op->n, &len) && long_of(m, len);
}

/* The only number that is big-endian. */
bool pickle_do_float(struct machine *m)
{
	struct pickle_value v = { .type = PICKLE_FLOAT };
	uint64_t bits;

	if (!machine_take(m, 8, &bits))
		return false;
	bits = __builtin_bswap64(bits);
	memcpy(&v.real, &bits, sizeof(bits));
	return machine_push(m, v);
}

bool pickle_do_text(struct machine *m)
{
	struct pickle_value v = { .type = PICKLE_TEXT, .form = (uint16_t)m->op->form };
	uint64_t len;

	if (!machine_take(m, m->op->n, &len))
		return false;
	if (len > (uint64_t)(m->end - m->at) || len > UINT32_MAX)
		return machine_fail(m, "a text that is longer than the rest of the file");
	v.text = (const char *)m->at;
	v.count = (uint32_t)len;
	m->at += len;
	return machine_push(m, v);
}

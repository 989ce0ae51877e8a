/* SPDX-License-Identifier: Apache-2.0 */
/* The opcodes of a pickle that make a value which holds no others. */
#include <string.h>

#include "pickle_machine.h"

bool pickle_do_none(struct machine *m)
{
	return machine_push(m, (struct pickle_value){ .type = PICKLE_NONE });
}

bool pickle_do_true(struct machine *m)
{
	return machine_push(m, (struct pickle_value){ .type = PICKLE_BOOL, .number = 1 });
}

bool pickle_do_false(struct machine *m)
{
	return machine_push(m, (struct pickle_value){ .type = PICKLE_BOOL });
}

static bool push_int(struct machine *m, int64_t n)
{
	return machine_push(m, (struct pickle_value){ .type = PICKLE_INT, .number = n });
}

static bool push_beyond(struct machine *m, uint64_t n)
{
	return machine_push(m, (struct pickle_value){ .type = PICKLE_INT,
						      .form = PICKLE_BEYOND,
						      .number = (int64_t)n });
}

bool pickle_do_int1(struct machine *m)
{
	uint64_t n;

	return machine_take(m, 1, &n) && push_int(m, (int64_t)n);
}

bool pickle_do_int2(struct machine *m)
{
	uint64_t n;

	return machine_take(m, 2, &n) && push_int(m, (int64_t)n);
}

bool pickle_do_int4(struct machine *m)
{
	uint64_t n;

	return machine_take(m, 4, &n) && push_int(m, (int32_t)n);
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

bool pickle_do_long1(struct machine *m)
{
	uint64_t len;

	return machine_take(m, 1, &len) && long_of(m, len);
}

bool pickle_do_long4(struct machine *m)
{
	uint64_t len;

	return machine_take(m, 4, &len) && long_of(m, len);
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

static bool text_of(struct machine *m, unsigned width, unsigned form)
{
	struct pickle_value v = { .type = PICKLE_TEXT, .form = (uint16_t)form };
	uint64_t len;

	if (!machine_take(m, width, &len))
		return false;
	if (len > (uint64_t)(m->end - m->at) || len > UINT32_MAX)
		return machine_fail(m, "a text that is longer than what is left");
	v.text = (const char *)m->at;
	v.count = (uint32_t)len;
	m->at += len;
	return machine_push(m, v);
}

bool pickle_do_text1(struct machine *m)
{
	return text_of(m, 1, PICKLE_PLAIN);
}

bool pickle_do_bytes1(struct machine *m)
{
	return text_of(m, 1, PICKLE_BYTES);
}

bool pickle_do_text4(struct machine *m)
{
	return text_of(m, 4, PICKLE_PLAIN);
}

bool pickle_do_bytes4(struct machine *m)
{
	return text_of(m, 4, PICKLE_BYTES);
}

bool pickle_do_text8(struct machine *m)
{
	return text_of(m, 8, PICKLE_PLAIN);
}

bool pickle_do_bytes8(struct machine *m)
{
	return text_of(m, 8, PICKLE_BYTES);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Between the files of the pickle reader only: the machine that carries out opcodes. */
#ifndef VIEWER_PICKLE_MACHINE_H
#define VIEWER_PICKLE_MACHINE_H

#include "pickle.h"

#define PICKLE_VALUES (UINT32_MAX - 1)

struct refs {
	uint32_t *v;
	size_t count, room;
};

struct machine {
	struct pickle *p;
	const uint8_t *start, *at, *end;
	struct refs stack, marks, memo;
	bool stopped;
};

typedef bool operation(struct machine *m);

bool machine_fail(struct machine *m, const char *what); /* false */
/* `n` bytes little-endian. */
bool machine_take(struct machine *m, unsigned n, uint64_t *out);
bool machine_push(struct machine *m, struct pickle_value v);

/* pickle_scalars.c */
operation pickle_do_none, pickle_do_true, pickle_do_false, pickle_do_int1, pickle_do_int2,
	pickle_do_int4, pickle_do_long1, pickle_do_long4, pickle_do_float, pickle_do_text1,
	pickle_do_text4, pickle_do_text8, pickle_do_bytes1, pickle_do_bytes4, pickle_do_bytes8;

#endif

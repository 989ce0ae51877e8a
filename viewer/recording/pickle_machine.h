/* SPDX-License-Identifier: Apache-2.0 */
/* Between the files of the pickle reader only: the machine that carries out opcodes. */
#ifndef VIEWER_PICKLE_MACHINE_H
#define VIEWER_PICKLE_MACHINE_H

#include "pickle.h"

#define PICKLE_VALUES (UINT32_MAX - 1)
#define PICKLE_INTS   16 /* bits of a hash */

struct refs {
	uint32_t *v;
	size_t count, room;
};

struct machine;
typedef bool operation(struct machine *m);

/* n: bytes of a number or a length that follows, a type, a count. */
struct opcode {
	const char *name; /* NULL: there is none of that code */
	operation *run;	  /* NULL: it is refused */
	unsigned n, form;
};

struct machine {
	struct pickle *p;
	const uint8_t *start, *at, *end;
	struct refs stack, marks, memo;
	uint32_t *ints; /* the latest value of some numbers, by their hash: its place + 1 */
	const struct opcode *op; /* that is carried out */
	bool stopped;
};

bool machine_fail(struct machine *m, const char *what); /* false */
/* `n` bytes little-endian. */
bool machine_take(struct machine *m, unsigned n, uint64_t *out);
void machine_push_ref(struct refs *r, uint32_t ref);
bool machine_push(struct machine *m, struct pickle_value v);

/* pickle_scalars.c */
operation pickle_do_value, pickle_do_bool, pickle_do_int, pickle_do_long, pickle_do_float,
	pickle_do_text;

#endif

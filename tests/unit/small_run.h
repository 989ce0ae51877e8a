/* SPDX-License-Identifier: Apache-2.0 */
/* A run made event by event, with the ranges, nodes and frames that real ones have. */
#pragma once

#include "recordings.h"

#include "../../viewer/model/model.h"
#include "../../viewer/model/steps.h"

#define ENGINE 2

enum { STEP_A = 1, STEP_B, ZERO, PROFILED, NODE };
enum {
	LINE_1 = 1,
	LINE_2,
	IN_MODULE,
	NO_PYTHON,
	WRAPPER,
	OWN_1,
	OWN_2,
	IN_BACKWARD,
	IN_CLOSURE, /* a module's call inside of an optimizer's step */
	CLOSURE_BACKWARD,
	CLEARING,    /* Module.zero_grad */
	FIRST_GRADS, /* of a call of backward() */
};

extern struct model m;
extern struct steps steps;
extern uint64_t seq;

int told_set_up(void **state);
int told_tear_down(void **state);
void begin(void);
void end(void); /* of the events: device 0 is looked at */
void clean(void);
void feed(struct gmt_event e);
uint64_t alloc(uint64_t size, uint32_t stack);
void drop(uint64_t addr, uint32_t stack);
uint64_t forward(uint64_t size);
void forward_alone(uint64_t size); /* without gradients: nothing is saved */
/* A gradient comes and stays, what was saved goes. */
uint64_t backward(uint64_t saved, uint64_t size);
uint64_t range_begin(uint32_t name, uint32_t thread); /* its number */
void range_end(uint32_t name, uint64_t number, uint32_t thread);
/* Where stack is 0, nothing is known of what ran inside. */
void optimize(uint32_t name, uint32_t stack, uint64_t size, uint32_t thread);
void zero_grad(uint64_t grad);
const struct step *step(size_t n); /* of what was found: from 1 on, 0 = before them */
struct step_phase phase(size_t n, enum phase phase);

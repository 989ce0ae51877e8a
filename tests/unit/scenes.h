/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Short lives of blocks, told event by event to a model, with stacks of Python or native frames:
 * for the tests of the classifier's rules.
 */
#pragma once

#include "recordings.h"

#include "../../viewer/classes/study.h"

#define TORCH "/v/lib/python3.11/site-packages/torch/"

enum { MAIN = 1, ENGINE = 2 }; /* threads: the program's, autograd's */

extern struct defs defs;
extern struct model m;
extern struct moment moment;

/* One for each rule or more. The block in question lies at 0x1000. */
struct scene {
	const char *rule, *category;
	const char *next; /* the rule that decides without it */
	void (*play)(void);
};

extern const struct scenes {
	const struct scene *items;
	size_t count;
} scenes_of_rules, scenes_of_graphs, scenes_of_sets, scenes_of_data, scenes_of_late, scenes_of_uses;

void scene_begin(void); /* no moment is taken */
void scene_end(void);
/* Plays a scene that calls now(), and takes that moment. */
void scene_play(void (*play)(void));

uint32_t frame_at(uint32_t parent, const char *file, const char *function, uint32_t line);
uint32_t frame(uint32_t parent, const char *file, const char *function);
/* A frame of net.py, whose statement the recording keeps. */
uint32_t statement(uint32_t parent, const char *function, const char *text);
uint32_t script(void);
uint32_t method(const char *file, const char *name); /* of a module that the script calls */
uint32_t forward(void);
void born(uint64_t addr, uint32_t stack); /* 4096 bytes */
void born_of_size(uint64_t addr, uint64_t size, uint32_t stack);
void died(uint64_t addr, uint32_t stack);
void born_in_backward(uint64_t addr, uint32_t stack);
void died_in_backward(uint64_t addr);
void leaf(uint64_t addr, uint64_t node);
void moved(uint64_t addr, uint64_t node);
void grad(uint64_t addr, uint64_t node);
void held(uint64_t addr, unsigned as); /* enum gmt_held */
void saved(uint64_t addr, uint64_t tensor, unsigned how);
void range(unsigned kind, uint64_t number, const char *name);
void refused(uint32_t stack); /* a request of 4096 bytes */
/* A launch; other: another block that it touches, 0 = none. */
void used(uint32_t stack, uint32_t thread, uint64_t addr, uint64_t other);
void backward_pass(void);
void now(void);
void some_tags(void);
void two_parameters(void);		       /* of 4096 and 8192 bytes */
void fact(const char *key, const char *value); /* of the process: before the first event */
uint32_t native_frame(void *(*function)(void));
uint32_t join(uint32_t native, uint32_t python);

/* Functions whose names rules look for. */
void *getCurrentCUDABlasHandle(void);
void *moves(void) __asm__("_ZN5torch8autograd16THPVariable_cudaEv");
void *rectifies(void) __asm__("_ZN5torch8autograd16THPVariable_reluEv");
void *squares(void) __asm__("_ZN5torch8autograd18THPVariable_squareEv");
void *maker(void) __asm__("_ZN5torch8autograd17THPVariable_randnEv");
void *zeros(void) __asm__("_ZN5torch8autograd17THPVariable_zerosEv");
void *clones(void) __asm__("_ZN5torch8autograd17THPVariable_cloneEv");
void *appends(void) __asm__("_ZN5torch8autograd15THPVariable_catEv");
void *makes_storage(void) __asm__("THPStorage_pynew");
void *brings(void) __asm__("_ZN5torch8autograd18THPVariable_tensorEv");
void *takes_rows(void) __asm__("_ZN5torch8autograd24THPVariable_index_selectEv");
void *computes(void) __asm__("_ZN5torch8autograd19THPVariable_softmaxEv");

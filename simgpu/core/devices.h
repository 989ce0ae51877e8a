/* SPDX-License-Identifier: Apache-2.0
 *
 * Cards, devices and contexts. Results are the ints of sim.h.
 */
#pragma once

#include "core.h"

/* ---- cards.c ---- */
bool card_known(void);
bool card_has_nvlink(void);
/* The card that SIMGPU_CARD would name, or (spec NULL) row i of the table; false if there is none.
 * The name of a NAME=SIZE card is valid until the next call. */
bool card_find(const char *spec, size_t i, struct sim_card *out);

/* ---- driver_lookup.c: cuGetProcAddress_v2, as the runtime and the libraries find it ---- */
int driver_ask(const char *symbol, void **fn, int version, uint64_t flags, int *status);
/* ---- card_names.c ---- */
/* Whether there is no such card; if so, the sentence for who named it `by` an option or a variable.
 */
bool card_unknown(const char *by, const char *spec, char *text, size_t room);

/* ---- device.c: initialisation, contexts, the thread's current one ---- */
enum ctx_code { CTX_KERNELS, CTX_NCCL, CTX_STREAMS, CTX_CODES };
struct sim_ctx {
	uint32_t kind;
	int device;
	bool primary, active; /* a context of the program's own that is not active has ended */
	bool runtime;	      /* the runtime uses it: the last reference to it never goes */
	unsigned int flags, refs;
	uint64_t id;
	unsigned int sms; /* multiprocessors of a partition without memory; 0: whole card */
	size_t loaded[CTX_CODES];
	unsigned int streams; /* that exist in it */
	struct sim_ctx *next; /* of the program's own, ended ones too */
};

int device_physical_count(void);		 /* whatever CUDA_VISIBLE_DEVICES says */
int device_physical(int ordinal);		 /* the physical device behind an ordinal */
int device_by_name(const char *s, int physical); /* "1" or "GPU-uuid", ended by a comma; or -1 */
int sim_init(void); /* as cuInit: 0, 3 in a forked child, 100 without a device */
bool sim_is_init(void);
/* Prologue of runtime calls that need a device: initialises, makes the current device's primary
 * context. */
int sim_enter(void);
/* Prologue of driver calls: 3 before cuInit, 201 without a current context. */
int sim_enter_driver(void);
int sim_enter_primary(int device); /* as the runtime does that needs it */
struct sim_ctx *ctx_current(void); /* may be NULL */
struct sim_ctx *ctx_primary(int device);
struct sim_ctx *ctx_check(void *handle); /* NULL if it is not a context */
struct sim_ctx *ctx_create(int device, unsigned int flags);
struct sim_ctx *ctx_create_part(int device, unsigned int sms); /* within the primary one */
void ctx_destroy(struct sim_ctx *ctx);			       /* and frees its memory */
uint32_t ctx_owner(int device); /* the id of the context that new memory belongs to */
struct sim_ctx *ctx_of(uint32_t owner, int device); /* the primary one, if none has that id */
int ctx_activate(int device);			    /* the primary context takes its memory */
void ctx_deactivate(struct sim_ctx *ctx);	    /* and frees it; memory_lock held */
/* Code and stack that the driver loads into a context once. *bytes, if it is not NULL:
 * what this call has taken. False if there is no room. */
bool ctx_load(int device, enum ctx_code what, size_t *bytes);
bool ctx_stream(int device); /* takes room for one more stream; false if there is none */
void ctx_stream_gone(struct sim_ctx *ctx);
void ctx_set(struct sim_ctx *ctx);
int ctx_push(struct sim_ctx *ctx);
int ctx_pop(struct sim_ctx **ctx);
int device_attribute(int *value, int attribute, int device);
/* These take the number of a physical device. */
void device_bus_id(char *s, size_t n, int physical);
void device_uuid(unsigned char *uuid, int physical);
void device_uuid_text(char *s, size_t n, int physical);

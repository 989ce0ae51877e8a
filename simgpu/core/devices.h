/* SPDX-License-Identifier: Apache-2.0
 *
 * Cards, devices and contexts. Results are the ints of sim.h.
 */
#pragma once

#include "core.h"

/* ---- cards.c ---- */
bool card_known(void); /* false: a setting for the card is invalid */
bool card_has_peers(void);
bool card_has_nvlink(void);
/* The card that SIMGPU_CARD would name, or (spec NULL) row i of the table; false if there is none.
 * The name of a NAME=SIZE card is valid until the next call. */
bool card_find(const char *spec, size_t i, struct sim_card *out);

/* ---- driver_lookup.c: cuGetProcAddress_v2, as the runtime and the libraries find it ---- */
int driver_ask(const char *symbol, void **fn, int version, uint64_t flags, int *status);
/* ---- card_names.c ---- */
/* True if there is no such card; then `text` is the error message, which begins with `by`, the
 * option or variable that named the card. */
bool card_unknown(const char *by, const char *spec, char *text, size_t room);

/* ---- device.c: initialisation, contexts, the thread's current one ---- */
enum ctx_code { CTX_KERNELS, CTX_NCCL, CTX_STREAMS, CTX_CODES };
struct sim_ctx {
	uint32_t kind;
	int device;
	bool primary, active; /* an inactive context that is not primary has ended */
	bool runtime;	      /* used by the runtime, which keeps the last reference */
	unsigned int flags, refs;
	uint64_t id;
	unsigned int sms;	  /* multiprocessors of a partition without memory; 0: whole card */
	size_t loaded[CTX_CODES]; /* bytes charged, by ctx_code */
	unsigned int streams;	  /* number of streams */
	struct sim_ctx *next;	  /* contexts that the program made, ended ones too */
};

int device_physical_count(void);		 /* regardless of CUDA_VISIBLE_DEVICES */
int device_physical(int ordinal);		 /* the physical device behind an ordinal */
int device_by_name(const char *s, int physical); /* "1" or "GPU-uuid", ended by a comma; or -1 */
int sim_init(void); /* as cuInit: 0, 3 in a forked child, 100 without a device */
bool sim_is_init(void);
/* Prologue of runtime calls that need a device: initialises, makes the current device's primary
 * context. */
int sim_enter(void);
/* Prologue of driver calls: 3 before cuInit, 201 without a current context. */
int sim_enter_driver(void);
int sim_enter_primary(int device); /* activates the context for the runtime */
struct sim_ctx *ctx_current(void); /* may be NULL */
struct sim_ctx *ctx_primary(int device);
struct sim_ctx *ctx_check(void *handle); /* NULL if it is not a context */
struct sim_ctx *ctx_create(int device, unsigned int flags);
struct sim_ctx *ctx_create_part(int device, unsigned int sms); /* a partition of the primary one */
void ctx_destroy(struct sim_ctx *ctx);			       /* and frees its memory */
uint32_t ctx_owner(int device); /* the id of the context that new memory belongs to */
struct sim_ctx *ctx_of(uint32_t owner, int device); /* the primary one, if none has that id */
int ctx_activate(int device);			    /* charges the primary context's memory */
void ctx_deactivate(struct sim_ctx *ctx);	    /* uncharges it; needs memory_lock */
/* Charges the code and stacks that the driver loads once for a context. *bytes (unless NULL) gets
 * the bytes charged by this call. False if there is no room. */
bool ctx_load(int device, enum ctx_code what, size_t *bytes);
bool ctx_stream(int device); /* charges one more stream; false if there is no room */
void ctx_stream_gone(struct sim_ctx *ctx);
void ctx_set(struct sim_ctx *ctx);
int ctx_push(struct sim_ctx *ctx);
int ctx_pop(struct sim_ctx **ctx);
int device_attribute(int *value, int attribute, int device);
/* These take the number of a physical device. */
void device_bus_id(char *s, size_t n, int physical);
void device_uuid(unsigned char *uuid, int physical);
void device_uuid_text(char *s, size_t n, int physical);

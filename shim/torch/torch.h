/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by the PyTorch sources: the release that runs, the layout of its tensors, the backward
 * node that runs on this thread. Application threads, with any lock held: only loads, no calls into
 * the framework but those that a hook replaces.
 */
#pragma once

#include "../capture.h"
#include "../stacks/frame_variables.h"

/* "" = not known. */
struct torch_release {
	char version[64], cuda[16];
};

/* Offsets that differ between releases (torch_versions.def). */
struct torch_layout {
	uint16_t head, offset, dtype, variable;
};

/* For Functions written in Python: offset of the object in its node, offset of the vector of saved
 * tensors in the object, and bytes of the vector's elements. */
struct torch_function {
	uint16_t object, saved, stride;
};

/* Memory of a tensor on a CUDA device. */
struct torch_memory {
	uint64_t addr; /* its first element */
	uint64_t size; /* of its storage */
	int32_t device;
};

/* Number of a private pool: std::pair<unsigned long long, unsigned long long>, in two registers. */
struct torch_pool {
	uint64_t first, second;
};

/* A hooked function's symbol, as a string. */
#define SYMBOL_TEXT(x) #x
#define NAME(x)	       SYMBOL_TEXT(x)

/* The release that is loaded; NULL = none. */
const struct torch_release *torch_release(void);
/* Its layout; NULL = none, or not a verified one. */
const struct torch_layout *torch_layout(void);
const struct torch_function *torch_function(void); /* the same */
bool torch_old_strings(void); /* built with the C++ library's old std::string */

/* Whether tags are wanted and available. */
bool torch_tags(void);

/* `impl` = TensorImpl. false: no memory of its own (undefined, wrapped, fake), or not on CUDA. */
bool torch_memory_of(const void *impl, struct torch_memory *m);
bool torch_storage_memory(const void *storage, struct torch_memory *m); /* StorageImpl */
/* The same in two parts, which also work on copies; only with a layout. */
uintptr_t torch_storage_of(const void *impl);
bool torch_memory_in(const void *impl, const void *storage, struct torch_memory *m);
unsigned torch_type_of(const void *impl); /* c10::ScalarType */
variable_reader torch_read_object;
/* p.grad of the parameter `impl`; NULL = none. */
const void *torch_grad_of(const void *impl);
/* Whether a differentiable operation made the tensor `impl`. */
bool torch_has_grad_fn(const void *impl);

/* An event about a tensor's memory: enum gmt_kind; arg0 = the tensor or node. */
struct gmt_event torch_event(uint16_t kind, const struct torch_memory *m, const void *arg0,
			     unsigned arg1);
void torch_tag(uint16_t kind, const struct torch_memory *m, const void *arg0); /* captures it */

/* Runs the real evaluation of a node; captures tensors that a Python Function releases in it. */
typedef void torch_evaluate(void *engine, void *task, void *node, void *inputs, void *queue);
/* Never inlined: its frame is on every backward stack, under its own name. */
__attribute__((noinline)) void torch_run_node(torch_evaluate *real, void *engine, void *task,
					      void *node, void *inputs, void *queue);

/* Fills name and scope with the backward node that runs on this thread (0, 0 = none). */
void torch_node_now(struct gmt_event *e);

/* For a block handed out: notes if a tensor requested it, and flags a large one if none did. */
void torch_size_block(struct gmt_event *e);
bool torch_sizes(void); /* whether requests of tensors are seen */
void torch_size_refused(void);
/* Work of this thread needs so many bytes at `addr`. Captured if this is the thread's latest block
 * and no tensor requested it. Of several users, the one that needs most counts. */
void torch_size_needed(uint64_t addr, uint64_t bytes);

/* The thread's current stream on a device. device -1 = the current one, returned in *is_on. */
uint64_t torch_stream(int8_t device, int8_t *is_on);
bool torch_graphs(void); /* whether captures of CUDA graphs are seen */
/* Hooks the allocator, the first time. Returns whether the pools that a program uses are seen. */
bool torch_pools(void);
/* Captures the begin or end (kind) of a pool's use by this thread; device -1 = the current one. */
void torch_pool_event(unsigned kind, unsigned flags, struct torch_pool pool, int8_t device);

/* Called once a session, when the release is known. */
void torch_ranges_start(void);

/*
 * The real function behind a hook, looked up once. `cache` is a static of the hook.
 */
void *torch_real(void **cache, const char *name);

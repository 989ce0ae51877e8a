/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the PyTorch sources share: which release runs, how its tensors lie in memory, which backward
 * node runs on this thread. Application threads, with any lock held: only loads, no calls into the
 * framework but the ones that a hook stands for.
 */
#pragma once

#include "../capture.h"
#include "../stacks/frame_variables.h"

/* "" where it is not known. */
struct torch_release {
	char version[64], cuda[16];
};

/* Offsets that differ between releases (torch_versions.def). */
struct torch_layout {
	uint16_t head, offset, dtype, variable;
};

/* Offsets of Functions written in Python: of the object in its node, of the vector of saved tensors
 * in that, and the bytes of an element. */
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

/* Whether tags are wanted, and can be had. */
bool torch_tags(void);

/* `impl` = TensorImpl. false: no memory of its own (undefined, wrapped, fake), or not on CUDA. */
bool torch_memory_of(const void *impl, struct torch_memory *m);
bool torch_storage_memory(const void *storage, struct torch_memory *m); /* StorageImpl */
/* The same in parts, where there is a layout: copies will do. */
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
void torch_tag(uint16_t kind, const struct torch_memory *m, const void *arg0); /* tells it */

/* Runs the real evaluation of a node, and tells what a Function in Python gives up by it. */
typedef void torch_evaluate(void *engine, void *task, void *node, void *inputs, void *queue);
/* Never inlined: its frame stands on every backward stack, and is named by its own function. */
__attribute__((noinline)) void torch_run_node(torch_evaluate *real, void *engine, void *task,
					      void *node, void *inputs, void *queue);

/* Fills name and scope with the backward node that runs on this thread (0, 0 = none). */
void torch_node_now(struct gmt_event *e);

/* A block was handed out: whether a tensor asked for it, and how large it is for that. */
void torch_size_block(struct gmt_event *e);
bool torch_sizes(void); /* whether tensors are seen asking */
void torch_size_refused(void);
/* Work of this thread needs so many bytes at `addr`. Says so where that is the thread's latest
 * block and no tensor asked for it; several may use it, and the most that one needs counts. */
void torch_size_needed(uint64_t addr, uint64_t bytes);

/* The thread's current stream; of the current device for -1, whose number comes back too. */
uint64_t torch_stream(int8_t device, int8_t *is_on);
bool torch_graphs(void); /* whether captures of CUDA graphs are seen */
/* Hooks the allocator, the first time; whether it is seen which pools a program takes from. */
bool torch_pools(void);
/* enum gmt_kind: from here on, or no longer; device -1 = the current one. */
void torch_pool_event(unsigned kind, unsigned flags, struct torch_pool pool, int8_t device);

/* Called once a session, when the release is known. */
void torch_ranges_start(void);

/*
 * The real function behind a hook, looked up once. `cache` is a static of the hook.
 */
void *torch_real(void **cache, const char *name);

/* SPDX-License-Identifier: Apache-2.0
 *
 * Initialisation, contexts, and the current context of each thread. A device's primary context
 * takes its share of the memory when it is first needed. Memory belongs to the context that was
 * current at its allocation, and is freed with it. A destroyed context stays as an inactive struct,
 * because it may be current in other threads. After a fork every call of the child returns "not
 * initialized" if the parent had initialised, as with the real driver.
 */
#include "devices.h"
#include "memory.h"

#define CTX_KIND   SIM_KIND('C', 'T', 'X', '1')
#define STACK_MOST 32

static struct sim_ctx primary[SIM_MAX_DEVICES];
static struct sim_ctx *own; /* under memory_lock */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int init_state; /* 0 not yet, 1 done, 2 failed */
static int init_result;
static bool forked;
static uint64_t next_id = 1;

static __thread struct sim_ctx *stack[STACK_MOST];
static __thread int depth;
static __thread int chosen; /* set by cudaSetDevice; counts while no context is current */

/* ---- initialisation ---- */

static void in_child(void)
{
	if (init_state == 1)
		forked = true;
}

int sim_init(void)
{
	if (forked)
		return SIM_NOT_INITIALIZED;
	if (__atomic_load_n(&init_state, __ATOMIC_ACQUIRE))
		return init_result;
	pthread_mutex_lock(&lock);
	if (!init_state) {
		init_result = sim_device_count() ? memory_init() : SIM_NO_DEVICE;
		for (int i = 0; i < SIM_MAX_DEVICES; i++)
			primary[i] =
				(struct sim_ctx){ .kind = CTX_KIND, .device = i, .primary = true };
		pthread_atfork(NULL, NULL, in_child);
		__atomic_store_n(&init_state, init_result ? 2 : 1, __ATOMIC_RELEASE);
	}
	pthread_mutex_unlock(&lock);
	return init_result;
}

bool sim_is_init(void)
{
	return __atomic_load_n(&init_state, __ATOMIC_ACQUIRE) == 1;
}

int sim_enter(void)
{
	int result = sim_init();

	if (result)
		return result;
	if (!depth)
		ctx_set(&primary[chosen]);
	if (ctx_current()->primary)
		return sim_enter_primary(ctx_current()->device);
	return ctx_current()->active ? SIM_OK : ERR_CONTEXT_DESTROYED;
}

int sim_enter_primary(int device)
{
	int result = ctx_activate(device);

	if (!result)
		__atomic_store_n(&primary[device].runtime, true, __ATOMIC_RELAXED);
	return result;
}

int sim_enter_driver(void)
{
	if (!sim_is_init() || forked)
		return SIM_NOT_INITIALIZED;
	if (!depth)
		return ERR_INVALID_CONTEXT;
	return ctx_current()->active ? SIM_OK : ERR_CONTEXT_DESTROYED;
}

/* ---- contexts ---- */

int ctx_activate(int device)
{
	struct sim_ctx *ctx = &primary[device];
	int result = SIM_OK;

	if (__atomic_load_n(&ctx->active, __ATOMIC_ACQUIRE))
		return SIM_OK;
	pthread_mutex_lock(&memory_lock);
	if (!ctx->active) {
		if (memory_charge(device, sim_card()->context)) {
			ctx->id = next_id++;
			__atomic_store_n(&ctx->active, true, __ATOMIC_RELEASE);
		} else {
			result = SIM_NOMEM;
		}
	}
	pthread_mutex_unlock(&memory_lock);
	return result;
}

void ctx_deactivate(struct sim_ctx *ctx)
{
	if (ctx->active && !ctx->sms)
		memory_uncharge(ctx->device, sim_card()->context);
	for (int i = 0; i < CTX_CODES; i++) {
		memory_uncharge(ctx->device, ctx->loaded[i]);
		ctx->loaded[i] = 0;
	}
	ctx->streams = ctx->refs = 0;
	ctx->runtime = false;
	__atomic_store_n(&ctx->active, false, __ATOMIC_RELEASE);
}

/* The context to which memory on a device is charged: the current one, or the primary one if the
 * current one is a partition or of another device. */
static struct sim_ctx *holder(int device)
{
	struct sim_ctx *ctx = ctx_current();

	return ctx && ctx->device == device && !ctx->sms ? ctx : &primary[device];
}

uint32_t ctx_owner(int device)
{
	return (uint32_t)holder(device)->id;
}

struct sim_ctx *ctx_of(uint32_t owner, int device)
{
	struct sim_ctx *ctx;

	pthread_mutex_lock(&memory_lock);
	for (ctx = own; ctx && (uint32_t)ctx->id != owner; ctx = ctx->next)
		;
	pthread_mutex_unlock(&memory_lock);
	return ctx ? ctx : &primary[device];
}

/* Memory of one stream: an H100 takes 70 MiB for the 128 streams that PyTorch makes when it first
 * needs one. A destroyed stream's memory stays, for the next stream. */
#define STREAM_BYTES ((size_t)560 << 10)

bool ctx_stream(int device)
{
	struct sim_ctx *ctx = holder(device);
	size_t all, more;
	bool done;

	pthread_mutex_lock(&memory_lock);
	all = sim_card()->small ? 0 : sim_whole_pages((ctx->streams + 1) * STREAM_BYTES);
	more = all > ctx->loaded[CTX_STREAMS] ? all - ctx->loaded[CTX_STREAMS] : 0;
	done = !more || memory_charge(device, more);
	if (done) {
		ctx->streams++;
		ctx->loaded[CTX_STREAMS] += more;
	}
	pthread_mutex_unlock(&memory_lock);
	return done;
}

void ctx_stream_gone(struct sim_ctx *ctx)
{
	ctx = ctx->sms ? &primary[ctx->device] : ctx;
	pthread_mutex_lock(&memory_lock);
	ctx->streams -= ctx->streams > 0;
	pthread_mutex_unlock(&memory_lock);
}

/* There is a stack for each thread that can run at once. On an H100 a program's first kernel takes
 * 91 to 95 MiB; NCCL's kernels and PyTorch's streams take 362 MiB together. On a small card, where
 * streams take nothing, NCCL's kernels take that whole share. */
static size_t code_bytes(enum ctx_code what)
{
	const struct sim_card *card = sim_card();
	size_t of_thread = what == CTX_KERNELS ? 361 : card->small ? 1404 : 1132;

	if (what == CTX_KERNELS && card->context_whole)
		return 0;
	return sim_whole_pages(card->sms * card->threads_per_sm * of_thread);
}

bool ctx_load(int device, enum ctx_code what, size_t *bytes)
{
	size_t *loaded = &holder(device)->loaded[what], take = 0;
	bool done = true;

	if (!__atomic_load_n(loaded, __ATOMIC_ACQUIRE)) {
		pthread_mutex_lock(&memory_lock);
		take = *loaded ? 0 : code_bytes(what);
		done = !take || memory_charge(device, take);
		if (done && take)
			__atomic_store_n(loaded, take, __ATOMIC_RELEASE);
		pthread_mutex_unlock(&memory_lock);
	}
	if (bytes)
		*bytes = done ? take : 0;
	return done;
}

struct sim_ctx *ctx_primary(int device)
{
	return &primary[device];
}

struct sim_ctx *ctx_check(void *handle)
{
	struct sim_ctx *ctx = handle;

	if (ctx >= primary && ctx < primary + SIM_MAX_DEVICES)
		return ctx;
	return sim_handle_check(handle, CTX_KIND) && ctx->active ? ctx : NULL;
}

static struct sim_ctx *create_context(int device, unsigned int flags, unsigned int sms)
{
	struct sim_ctx *ctx = sim_handle(CTX_KIND, sizeof(*ctx));
	bool charged;

	if (!ctx)
		return NULL;
	pthread_mutex_lock(&memory_lock);
	charged = sms || memory_charge(device, sim_card()->context);
	*ctx = (struct sim_ctx){ .kind = CTX_KIND,
				 .device = device,
				 .active = true,
				 .flags = flags,
				 .refs = 1,
				 .id = next_id++,
				 .sms = sms,
				 .next = own };
	own = charged ? ctx : own;
	pthread_mutex_unlock(&memory_lock);
	if (charged)
		return ctx;
	sim_handle_free(ctx);
	return NULL;
}

struct sim_ctx *ctx_create(int device, unsigned int flags)
{
	return create_context(device, flags, 0);
}

struct sim_ctx *ctx_create_part(int device, unsigned int sms)
{
	return create_context(device, 0, sms);
}

void ctx_destroy(struct sim_ctx *ctx)
{
	int left = 0;

	for (int i = 0; i < depth; i++)
		if (stack[i] != ctx)
			stack[left++] = stack[i];
	depth = left;
	memory_end(ctx);
}

struct sim_ctx *ctx_current(void)
{
	return depth ? stack[depth - 1] : NULL;
}

void ctx_set(struct sim_ctx *ctx)
{
	if (!ctx) {
		depth -= depth > 0;
		return;
	}
	if (!depth)
		depth = 1;
	stack[depth - 1] = ctx;
}

int ctx_push(struct sim_ctx *ctx)
{
	if (depth == STACK_MOST)
		return SIM_INVALID;
	stack[depth++] = ctx;
	return SIM_OK;
}

int ctx_pop(struct sim_ctx **ctx)
{
	if (!depth)
		return ERR_INVALID_CONTEXT;
	depth--;
	if (ctx)
		*ctx = stack[depth];
	return SIM_OK;
}

int sim_device(void)
{
	return depth ? stack[depth - 1]->device : chosen;
}

int sim_set_device(int ordinal)
{
	int result = sim_init();

	if (result)
		return result;
	if (ordinal < 0 || ordinal >= sim_device_count())
		return SIM_BAD_DEVICE;
	chosen = ordinal;
	ctx_set(&primary[ordinal]);
	/* Since CUDA 12 the context is made at once. */
	return sim_cuda_major() >= 12 ? sim_enter_primary(ordinal) : SIM_OK;
}

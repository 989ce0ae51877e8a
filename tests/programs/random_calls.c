/* SPDX-License-Identifier: Apache-2.0 */
/*
 * needs: cuda
 *
 * random_calls SEED OPERATIONS MOMENTS GROUP,GROUP,...: random calls of runtime and driver that
 * give and take memory. The program keeps its own account (random_calls.h), compares it with what
 * the device says all the time, and prints it as JSON at some moments, which are marks of a
 * recording: that must say the same.
 */
#include "random_memory.h"

extern void gpumemtrace_mark(const char *name) __attribute__((weak));

/* ---- graphs ---- */

/* What is captured happens at the launch, in this order. */
static void graph(void)
{
	int d = some_device(), n = 1 + (int)any(4);
	struct block b[4];
	bool inside[4];
	cudaGraph_t g;
	cudaGraphExec_t e;

	MUST(cudaStreamBeginCapture(streams[d], cudaStreamCaptureModeThreadLocal));
	for (int i = 0; i < n; i++) {
		b[i] = (struct block){ .kind = GRAPH, .device = d, .bytes = some_bytes() };
		inside[i] = any(2);
		MUST(cudaMallocAsync(&b[i].p, b[i].bytes, streams[d]));
		if (inside[i])
			MUST(cudaFreeAsync(b[i].p, streams[d]));
	}
	MUST(cudaStreamEndCapture(streams[d], &g));
	MUST(cudaGraphInstantiate(&e, g, 0));
	MUST(cudaGraphLaunch(e, streams[d]));
	for (int i = 0; i < n; i++) {
		born(b[i]);
		if (inside[i])
			died(lives - 1);
	}
	MUST(cudaGraphExecDestroy(e));
	MUST(cudaGraphDestroy(g));
}

static void drop_graph(int d)
{
	if (!kept[d].graph)
		return;
	MUST(cudaGraphExecDestroy(kept[d].exec));
	MUST(cudaGraphDestroy(kept[d].graph));
	kept[d].graph = NULL;
}

static void make_graph(int d)
{
	kept[d].bytes = some_bytes();
	kept[d].frees_left = any(2);
	MUST(cudaStreamBeginCapture(streams[d], cudaStreamCaptureModeThreadLocal));
	MUST(cudaMallocAsync(&kept[d].p, kept[d].bytes, streams[d]));
	MUST(cudaStreamEndCapture(streams[d], &kept[d].graph));
	MUST(cudaGraphInstantiate(&kept[d].exec, kept[d].graph, kept[d].frees_left));
}

static void launch_again(void)
{
	int d = some_device();

	if (kept[d].graph && !any(8))
		drop_graph(d);
	if (!kept[d].graph)
		make_graph(d);
	for (size_t i = 0; i < lives; i++)
		if (live[i].kind == GRAPH && live[i].p == kept[d].p) {
			if (!kept[d].frees_left) {
				REFUSED(cudaGraphLaunch(kept[d].exec, streams[d]));
				return;
			}
			died(i);
			break;
		}
	MUST(cudaGraphLaunch(kept[d].exec, streams[d]));
	born((struct block){ GRAPH, d, NULL, kept[d].p, kept[d].bytes, false, 0, { 0 } });
}

/* ---- contexts ---- */

static void begin_context(void)
{
	CUctxCreateParams params = { 0 };
	struct context c = { .device = some_device() };
	size_t before = in_use(c.device);

	if (contexts == CONTEXTS)
		return;
	MUST(cuCtxCreate(&c.handle, &params, 0, c.device));
	MUST(cuCtxPopCurrent(NULL));
	if (!context_bytes)
		context_bytes = in_use(c.device) - before;
	context[contexts++] = c;
}

static void end_context(void)
{
	struct context c = contexts ? context[any(contexts)] : (struct context){ 0 };

	if (!contexts || any(2))
		return;
	if (any(2)) /* it may be current, or not */
		MUST(cuCtxPushCurrent(c.handle));
	MUST(cuCtxDestroy(c.handle));
	died_with(c.device, c.handle);
	for (size_t i = 0; i < contexts; i++)
		if (context[i].handle == c.handle)
			context[i--] = context[--contexts];
}

static void begin_primary(int device)
{
	size_t spare, before;

	MUST(cudaSetDevice(device));
	MUST(cudaStreamCreateWithFlags(&streams[device], cudaStreamNonBlocking));
	before = account[device].primary;
	account[device].primary = 0;
	account[device].primary = in_use(device) - expected(device, &spare);
	if (before && account[device].primary > before + spare)
		wrong("the primary context takes", (long long)account[device].primary,
		      (long long)before);
	account[device].primary = before ? before : account[device].primary;
}

/* Physical memory, and pools of the program's own, are given up before: CUDA's documentation does
 * not say whether they stay. */
static void reset(void)
{
	int d = some_device();

	if (any(20))
		return;
	for (size_t i = lives; i--;)
		if (live[i].device == d && (live[i].kind == PHYSICAL || live[i].kind == POOLED))
			end_block(i);
	MUST(cudaSetDevice(d));
	drop_pool(d);
	drop_graph(d);
	MUST(any(2) ? (int)cudaDeviceReset() : (int)cuDevicePrimaryCtxReset(d));
	died_with(d, NULL);
	begin_primary(d);
}

/* ---- calls that CUDA refuses: nothing changes ---- */

static void refuse_free(void)
{
	long i = some_block(LINEAR), host = some_block(PINNED), pool = some_block(ASYNC);
	struct block b;

	if (host >= 0)
		REFUSED(any(2) ? (int)cudaFree(live[host].p)
			       : (int)cuMemFree((CUdeviceptr)live[host].p));
	if (pool >= 0)
		REFUSED(cudaFreeAsync((char *)live[pool].p + 1, NULL));
	if (i < 0)
		return;
	b = live[i];
	REFUSED(cudaFreeHost(b.p));
	REFUSED(cudaFree((char *)b.p + 1));
	end_block((size_t)i);
	REFUSED(cudaFree(b.p));
}

static void refuse_request(void)
{
	int d = some_device();
	void *p;

	REFUSED(any(2) ? cudaMalloc(&p, (size_t)1 << 40)
		       : cudaMallocAsync(&p, (size_t)1 << 40, streams[d]));
}

static void refuse_in_capture(void)
{
	long i = some_block(LINEAR);
	cudaGraph_t g;
	int d;

	if (i < 0)
		return;
	d = live[i].device;
	MUST(cudaSetDevice(d));
	MUST(cudaStreamBeginCapture(streams[d], cudaStreamCaptureModeGlobal));
	REFUSED(cudaFree(live[i].p));
	REFUSED(cudaStreamEndCapture(streams[d], &g));
}

static void refuse_physical(void)
{
	long i = some_block(PHYSICAL);
	struct block *b = &live[i];

	if (i < 0 || !b->mapped)
		return;
	if (b->bytes > PAGE) {
		REFUSED(cuMemUnmap((CUdeviceptr)b->p, PAGE));
		REFUSED(cuMemUnmap((CUdeviceptr)b->p + PAGE, b->bytes - PAGE));
	}
	REFUSED(cuMemAddressFree((CUdeviceptr)b->p, b->bytes));
	if (b->handles == 1 && !has("share")) {
		MUST(cuMemRelease(b->handle[--b->handles]));
		REFUSED(cuMemRelease(b->handle[0])); /* once too often */
	}
}

static void refuse_context(void)
{
	REFUSED(cuCtxDestroy((CUcontext)0x1230));
	REFUSED(cuDevicePrimaryCtxReset(DEVICES + 3));
}

static const struct {
	const char *group;
	void (*run)(void);
	unsigned weight;
} operations[] = {
	{ "linear", linear, 6 },
	{ "linear", churn, 2 },
	{ "async", async, 4 },
	{ "pools", pooled, 3 },
	{ "async", trim, 1 },
	{ "managed", managed, 2 },
	{ "host", pinned, 2 },
	{ "host", registered, 1 },
	{ "arrays", array, 2 },
	{ "vmm", physical, 2 },
	{ "vmm", move_physical, 6 },
	{ "graphs", graph, 2 },
	{ "relaunch", launch_again, 4 },
	{ "contexts", begin_context, 1 },
	{ "contexts", end_context, 1 },
	{ "reset", reset, 1 },
	{ "refused", refuse_free, 2 },
	{ "refused", refuse_request, 1 },
	{ "refused", refuse_in_capture, 1 },
	{ "refused", refuse_physical, 2 },
	{ "refused", refuse_context, 1 },
	{ "", end_some, 14 },
};

#define OPERATIONS (sizeof(operations) / sizeof(operations[0]))

/* What is held now, and most until now, as JSON; "mark" in the recording is this moment. */
static void say(void)
{
	static bool before;

	if (gpumemtrace_mark)
		gpumemtrace_mark("account");
	for (int d = 0; d < (has("devices") ? DEVICES : 1); d++) {
		printf("%s{\"device\": %d, \"peak_bytes\": %lu, \"peak_blocks\": %lu, \"bytes\": "
		       "%lu, "
		       "\"blocks\": %lu}\n",
		       before ? ", " : "", d, account[d].peak, account[d].peak_count,
		       account[d].now, account[d].count);
		before = true;
	}
}

static void step(void)
{
	uint64_t turn = any(64);
	size_t i = any(OPERATIONS);

	if (lives > BLOCKS - 8)
		i = OPERATIONS - 1;
	else if (turn >= operations[i].weight * 4 ||
		 (*operations[i].group && !has(operations[i].group)))
		return;
	at++;
	doing = operations[i].group;
	operations[i].run();
	if (at % 16)
		return;
	for (int d = 0; d < (has("devices") ? DEVICES : 1); d++)
		check_device(d, pools[d]);
}

int main(int argc, char **argv)
{
	long operations_all, moments;

	if (argc != 5)
		return 2;
	chance = strtoull(argv[1], NULL, 10) * 0x9e3779b97f4a7c15ull + 1;
	operations_all = strtol(argv[2], NULL, 10);
	moments = strtol(argv[3], NULL, 10);
	groups = argv[4];
	doing = "begin";
	for (int d = 0; d < (has("devices") ? DEVICES : 1); d++)
		begin_primary(d);
	printf("[");
	for (long said = 1; said <= moments; said++) {
		while (at < operations_all / moments * said)
			step();
		say();
	}
	puts("]");
	return 0;
}

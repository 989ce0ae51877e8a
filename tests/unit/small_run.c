/* SPDX-License-Identifier: Apache-2.0 */
#include "small_run.h"

#include "../../format/record.h"

static struct defs defs;
struct model m;
static struct stacks stacks;
struct steps steps;
uint64_t seq;
static uint64_t ranges, next_addr;
static uint32_t scope;

static void define(unsigned kind, uint32_t id, const void *payload, size_t len)
{
	struct gmt_def d = { kind, id, (uint32_t)len, payload };

	assert_int_equal(defs_add(&defs, &d), 0);
}

static void define_code(uint32_t id, const char *file, const char *name)
{
	uint8_t bytes[256];
	struct gmt_def_code code = { .first_line = id * 10,
				     .python = 0x30b,
				     .file_len = strlen(file),
				     .name_len = strlen(name) };

	memcpy(bytes, &code, sizeof(code));
	memcpy(bytes + sizeof(code), file, code.file_len);
	memcpy(bytes + sizeof(code) + code.file_len, name, code.name_len);
	define(GMT_DEF_CODE, id, bytes, sizeof(code) + code.file_len + code.name_len);
}

static void define_frame(uint32_t id, uint32_t parent, uint32_t code)
{
	struct gmt_def_stack s = { (uint64_t)code << 32 | 1, parent, GMT_FRAME_PYTHON };

	define(GMT_DEF_STACK, id, &s, sizeof(s));
}

/* Autograd tells what it saves. */
static void define_tags(void)
{
	static const struct {
		struct gmt_def_meta head;
		char text[12];
	} meta = { { .key_len = 10 },
		   { 't', 'o', 'r', 'c', 'h', '.', 't', 'a', 'g', 's', 'o', 'n' } };
	uint8_t bytes[sizeof(meta.head) + sizeof(meta.text)];

	memcpy(bytes, &meta.head, sizeof(meta.head));
	memcpy(bytes + sizeof(meta.head), meta.text, sizeof(meta.text));
	define(GMT_DEF_META, 0, bytes, sizeof(bytes));
}

int told_set_up(void **state)
{
	struct gmt_def_thread engine = { 2, 13 };
	uint8_t thread[32];

	(void)state;
	define_tags();
	define(GMT_DEF_STRING, STEP_A, "Optimizer.step#AdamW.step", 25);
	define(GMT_DEF_STRING, STEP_B, "Optimizer.step#SGD.step", 23);
	define(GMT_DEF_STRING, ZERO, "Optimizer.zero_grad#AdamW.zero_grad", 35);
	define(GMT_DEF_STRING, PROFILED, "ProfilerStep#0", 14);
	define(GMT_DEF_STRING, NODE, "AddmmBackward0", 14);
	memcpy(thread, &engine, sizeof(engine));
	memcpy(thread + sizeof(engine), "pt_autograd_0", 13);
	define(GMT_DEF_THREAD, ENGINE, thread, sizeof(engine) + 13);
	define_code(1, "/home/me/train.py", "one");
	define_code(2, "/home/me/train.py", "two");
	define_code(3, "/x/site-packages/torch/nn/modules/module.py", "Module._call_impl");
	define_code(4, "/x/site-packages/torch/optim/optimizer.py",
		    "Optimizer.profile_hook_step.<locals>.wrapper");
	define_code(5, "/home/me/mine.py", "MyOptimizer.step");
	define_code(6, "/home/me/mine.py", "MyOptimizer.begin");
	define_frame(LINE_1, 0, 1);
	define_frame(WRAPPER, LINE_1, 4);
	define_frame(OWN_1, WRAPPER, 5);
	define_frame(OWN_2, WRAPPER, 6);
	define_frame(LINE_2, 0, 2);
	define_frame(IN_MODULE, LINE_1, 3);
	define_code(7, "/x/site-packages/torch/autograd/__init__.py", "backward");
	define_code(8, "/x/site-packages/torch/nn/modules/module.py", "Module.zero_grad");
	define_frame(IN_BACKWARD, LINE_1, 7);
	define_frame(IN_CLOSURE, WRAPPER, 3);
	define_frame(CLOSURE_BACKWARD, WRAPPER, 7);
	define_frame(CLEARING, LINE_1, 8);
	define_code(9, "/x/site-packages/torch/autograd/__init__.py", "_make_grads");
	define_frame(FIRST_GRADS, IN_BACKWARD, 9);
	return 0;
}

int told_tear_down(void **state)
{
	(void)state;
	defs_free(&defs);
	return 0;
}

void begin(void)
{
	seq = ranges = 0;
	next_addr = 0x1000;
	scope = 0;
	model_init(&m, &defs);
	stacks_init(&stacks, &defs, NULL);
}

void end(void)
{
	model_measure_spans(&m, 0);
	steps_find(&steps, &m.spans, &stacks);
}

void clean(void)
{
	steps_free(&steps);
	stacks_free(&stacks);
	model_free(&m);
}

void feed(struct gmt_event e)
{
	e.seq = ++seq;
	e.time_ns = seq * 10;
	e.thread = e.thread ? e.thread : 1;
	model_event(&m, &e);
}

uint64_t alloc(uint64_t size, uint32_t stack)
{
	next_addr += 0x10000;
	feed((struct gmt_event){
		.kind = GMT_BLOCK_ALLOC, .addr = next_addr, .size = size, .stack = stack });
	return next_addr;
}

void drop(uint64_t addr, uint32_t stack)
{
	feed((struct gmt_event){ .kind = GMT_BLOCK_FREE, .addr = addr, .stack = stack });
}

uint64_t forward(uint64_t size)
{
	uint64_t kept = alloc(size, IN_MODULE);

	feed((struct gmt_event){
		.kind = GMT_TAG_SAVED, .addr = kept, .arg0 = kept, .stack = IN_MODULE });
	drop(alloc(1, LINE_1), LINE_1); /* a loss, outside of the module */
	return kept;
}

void forward_alone(uint64_t size)
{
	drop(alloc(size, IN_MODULE), IN_MODULE);
	drop(alloc(1, LINE_1), LINE_1);
}

uint64_t backward(uint64_t saved, uint64_t size)
{
	uint64_t grad;

	scope++;
	feed((struct gmt_event){ .kind = GMT_BLOCK_ALLOC,
				 .thread = ENGINE,
				 .addr = grad = next_addr += 0x10000,
				 .size = size,
				 .name = NODE,
				 .scope = scope });
	feed((struct gmt_event){
		.kind = GMT_BLOCK_FREE, .thread = ENGINE, .addr = saved, .scope = scope });
	feed((struct gmt_event){ .kind = GMT_TAG_GRAD, .thread = ENGINE, .addr = grad });
	return grad;
}

uint64_t range_begin(uint32_t name, uint32_t thread)
{
	uint64_t number = ++ranges;

	feed((struct gmt_event){
		.kind = GMT_RANGE_BEGIN, .name = name, .arg0 = number, .thread = thread });
	return number;
}

void range_end(uint32_t name, uint64_t number, uint32_t thread)
{
	feed((struct gmt_event){
		.kind = GMT_RANGE_END, .name = name, .arg0 = number, .thread = thread });
}

void optimize(uint32_t name, uint32_t stack, uint64_t size, uint32_t thread)
{
	uint64_t number = range_begin(name, thread);

	if (stack) {
		uint64_t addr = next_addr += 0x10000;

		feed((struct gmt_event){ .kind = GMT_BLOCK_ALLOC,
					 .thread = thread,
					 .addr = addr,
					 .size = size,
					 .stack = stack });
		feed((struct gmt_event){ .kind = GMT_BLOCK_FREE, .thread = thread, .addr = addr });
	}
	range_end(name, number, thread);
}

void zero_grad(uint64_t grad)
{
	uint64_t number = range_begin(ZERO, 1);

	if (grad)
		drop(grad, LINE_1);
	range_end(ZERO, number, 1);
}

const struct step *step(size_t n)
{
	return &steps.items[n];
}

struct step_phase phase(size_t n, enum phase phase)
{
	return steps_phase(&m.spans, step(n), phase);
}

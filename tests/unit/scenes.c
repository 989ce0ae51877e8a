/* SPDX-License-Identifier: Apache-2.0 */
#include "scenes.h"

#include "../../format/record.h"
#include "../../format/uses.h"

#include <elf.h>
#include <link.h>

struct defs defs;
struct model m;
struct moment moment;
static uint64_t seq;
static uint32_t ids;

static void define(unsigned kind, uint32_t id, const void *head, size_t n, const char *a,
		   const char *b, const char *c)
{
	char payload[8192];
	const char *texts[] = { a, b, c };
	size_t len = n;

	if (n)
		memcpy(payload, head, n);
	for (int i = 0; i < 3; i++)
		if (texts[i]) {
			memcpy(payload + len, texts[i], strlen(texts[i]));
			len += strlen(texts[i]);
		}
	defs_add(&defs, &(struct gmt_def){ kind, id, (uint32_t)len, payload });
}

static uint32_t string(const char *s)
{
	define(GMT_DEF_STRING, ++ids, NULL, 0, s, NULL, NULL);
	return ids;
}

/* A frame of `function` in `file`, called from `parent`; its line is the function's first one. */
uint32_t frame_at(uint32_t parent, const char *file, const char *function, uint32_t line)
{
	uint32_t code = ++ids, node = ++ids;
	struct gmt_def_code c = { .first_line = line,
				  .python = 779,
				  .file_len = (uint32_t)strlen(file),
				  .name_len = (uint32_t)strlen(function),
				  .table_len = 2 };
	struct gmt_def_stack s = { (uint64_t)code << 32 | 1, parent, GMT_FRAME_PYTHON };

	define(GMT_DEF_CODE, code, &c, sizeof(c), file, function, "\x80\x7f");
	define(GMT_DEF_STACK, node, &s, sizeof(s), NULL, NULL, NULL);
	return node;
}

uint32_t frame(uint32_t parent, const char *file, const char *function)
{
	return frame_at(parent, file, function, 10);
}

uint32_t script(void)
{
	return frame(0, "/home/u/train.py", "<module>");
}

/* Inside the call of a module of the program's own. */
uint32_t method(const char *file, const char *name)
{
	return frame(frame(script(), TORCH "nn/modules/module.py", "Module._call_impl"), file,
		     name);
}

uint32_t forward(void)
{
	return method("/home/u/net.py", "Net.forward");
}

static void feed(struct gmt_event e)
{
	e.seq = ++seq;
	e.time_ns = seq * 1000;
	if (!e.thread)
		e.thread = MAIN;
	model_event(&m, &e);
}

void born_of_size(uint64_t addr, uint64_t size, uint32_t stack)
{
	feed((struct gmt_event){
		.kind = GMT_BLOCK_ALLOC, .addr = addr, .size = size, .stack = stack });
}

void born(uint64_t addr, uint32_t stack)
{
	born_of_size(addr, 4096, stack);
}

void died(uint64_t addr, uint32_t stack)
{
	feed((struct gmt_event){
		.kind = GMT_BLOCK_FREE, .addr = addr, .size = 4096, .stack = stack });
}

/* The same by a backward node, on autograd's own thread. */
void born_in_backward(uint64_t addr, uint32_t stack)
{
	feed((struct gmt_event){ .kind = GMT_BLOCK_ALLOC,
				 .addr = addr,
				 .size = 4096,
				 .stack = stack,
				 .thread = ENGINE });
}

void died_in_backward(uint64_t addr)
{
	feed((struct gmt_event){
		.kind = GMT_BLOCK_FREE, .addr = addr, .size = 4096, .thread = ENGINE });
}

void leaf(uint64_t addr, uint64_t node)
{
	feed((struct gmt_event){ .kind = GMT_TAG_LEAF, .addr = addr, .size = 64, .arg0 = node });
}

void held(uint64_t addr, unsigned as)
{
	feed((struct gmt_event){
		.kind = GMT_TAG_HELD, .addr = addr, .size = 64, .arg1 = as, .device = 0 });
}

void moved(uint64_t addr, uint64_t node)
{
	feed((struct gmt_event){
		.kind = GMT_TAG_MOVED, .addr = addr, .size = 64, .arg0 = node, .thread = ENGINE });
}

void grad(uint64_t addr, uint64_t node)
{
	feed((struct gmt_event){
		.kind = GMT_TAG_GRAD, .addr = addr, .size = 64, .arg0 = node, .thread = ENGINE });
}

void saved(uint64_t addr, uint64_t tensor, unsigned how)
{
	feed((struct gmt_event){
		.kind = GMT_TAG_SAVED, .addr = addr, .size = 64, .arg0 = tensor, .arg1 = how });
}

void range(unsigned kind, uint64_t number, const char *name)
{
	feed((struct gmt_event){ .kind = kind, .arg0 = number, .name = string(name) });
}

void refused(uint32_t stack)
{
	feed((struct gmt_event){ .kind = GMT_BLOCK_OOM, .size = 4096, .stack = stack });
}

void used(uint32_t stack, uint32_t thread, uint64_t addr, uint64_t other)
{
	struct gmt_event e = {
		.kind = GMT_USE, .addr = addr, .stack = stack, .thread = thread, .arg1 = string("k")
	};

	if (other)
		gmt_use_put(&e, 1, other);
	feed(e);
}

void backward_pass(void)
{
	born(0xb0000, script());
	died(0xb0000, script());
	born_in_backward(0xc0000, 0);
	died_in_backward(0xc0000);
}

/* The moment that is asked about is now. */
void now(void)
{
	moment.seq = seq;
	feed((struct gmt_event){ .kind = GMT_MARK });
}

void fact(const char *key, const char *value)
{
	const uint16_t len = (uint16_t)strlen(key);

	define(GMT_DEF_META, 0, &len, sizeof(len), key, value, NULL);
}

void some_tags(void)
{
	leaf(0xfff0000, 7);
}

/* This program's own function has the name that the rule looks for. */
__attribute__((noinline)) void *getCurrentCUDABlasHandle(void)
{
	return __builtin_return_address(0);
}

/* GNU's note: three words, the name "GNU", the build-id. */
static const char *build_id(const ElfW(Phdr) * p, uint64_t bias, uint16_t *len)
{
	for (uint64_t at = 0; at + sizeof(ElfW(Nhdr)) < p->p_memsz;) {
		const ElfW(Nhdr) *n = (const void *)(uintptr_t)(bias + p->p_vaddr + at);

		if (n->n_type == NT_GNU_BUILD_ID) {
			*len = (uint16_t)n->n_descsz;
			return (const char *)(n + 1) + 4;
		}
		at += sizeof(*n) + ((n->n_namesz + 3) & ~3u) + ((n->n_descsz + 3) & ~3u);
	}
	return NULL;
}

void two_parameters(void)
{
	uint32_t made = frame(script(), TORCH "nn/modules/module.py", "Module._apply");

	some_tags();
	born(0x8000, made);
	born_of_size(0xa000, 8192, made);
}

/* torch::autograd::THPVariable_randn() */
__attribute__((noinline)) void *maker(void)
{
	return __builtin_return_address(0);
}

/* torch::autograd::THPVariable_zeros() */
__attribute__((noinline)) void *zeros(void)
{
	return __builtin_return_address(0);
}

/* torch::autograd::THPVariable_clone() */
__attribute__((noinline)) void *clones(void)
{
	return __builtin_return_address(0);
}

/* torch::autograd::THPVariable_cuda() */
__attribute__((noinline)) void *moves(void)
{
	return __builtin_return_address(0);
}

/* torch::autograd::THPVariable_relu() */
__attribute__((noinline)) void *rectifies(void)
{
	return __builtin_return_address(0);
}

/* torch::autograd::THPVariable_square() */
__attribute__((noinline)) void *squares(void)
{
	return __builtin_return_address(0);
}

/* torch::autograd::THPVariable_cat() */
__attribute__((noinline)) void *appends(void)
{
	return __builtin_return_address(0);
}

__attribute__((noinline)) void *makes_storage(void)
{
	return __builtin_return_address(0);
}

/* torch::autograd::THPVariable_tensor() */
__attribute__((noinline)) void *brings(void)
{
	return __builtin_return_address(0);
}

static int note_module(struct dl_phdr_info *info, size_t size, void *ctx)
{
	struct gmt_def_module h = { .start = info->dlpi_addr, .bias = info->dlpi_addr };
	char id[65] = "", payload[256];
	uint16_t id_len = 0;
	const char *found;

	(void)size;
	(void)ctx;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];

		if (p->p_type == PT_LOAD)
			h.end = info->dlpi_addr + p->p_vaddr + p->p_memsz;
		if (p->p_type == PT_NOTE && (found = build_id(p, info->dlpi_addr, &id_len)))
			memcpy(id, found, id_len);
	}
	h.build_id_len = id_len;
	h.path_len = 14;
	memcpy(payload, &h, sizeof(h));
	memcpy(payload + sizeof(h), id, h.build_id_len);
	memcpy(payload + sizeof(h) + h.build_id_len, "/proc/self/exe", 14);
	defs_add(&defs, &(struct gmt_def){ GMT_DEF_MODULE, ++ids,
					   (uint32_t)(sizeof(h) + h.build_id_len + 14), payload });
	return 1; /* the first one is the program */
}

/* torch::autograd::THPVariable_index_select() */
__attribute__((noinline)) void *takes_rows(void)
{
	return __builtin_return_address(0);
}

/* torch::autograd::THPVariable_softmax() */
__attribute__((noinline)) void *computes(void)
{
	return __builtin_return_address(0);
}

/* A stack of both kinds of frames. */
uint32_t join(uint32_t native, uint32_t python)
{
	struct gmt_def_stack s = { python, native, GMT_FRAME_JOIN };

	define(GMT_DEF_STACK, ++ids, &s, sizeof(s), NULL, NULL, NULL);
	return ids;
}

uint32_t native_frame(void *(*function)(void))
{
	struct gmt_def_stack s = { (uint64_t)(uintptr_t)function + 2, 0, GMT_FRAME_NATIVE };

	dl_iterate_phdr(note_module, NULL);
	define(GMT_DEF_STACK, ++ids, &s, sizeof(s), NULL, NULL, NULL);
	return ids;
}

void scene_begin(void)
{
	struct gmt_def_thread main_thread = { 1, 4 }, engine = { 2, 13 };

	seq = ids = 0;
	define(GMT_DEF_THREAD, MAIN, &main_thread, sizeof(main_thread), "main", NULL, NULL);
	define(GMT_DEF_THREAD, ENGINE, &engine, sizeof(engine), "pt_autograd_0", NULL, NULL);
	model_init(&m, &defs);
	study_begin(&m);
	moment = (struct moment){ .device = 0, .framework = true, .seq = UINT64_MAX };
}

void scene_end(void)
{
	moment_free(&moment);
	model_free(&m);
	defs_free(&defs);
	defs = (struct defs){ 0 };
}

void scene_play(void (*play)(void))
{
	scene_begin();
	play();
	model_settle(&m);
	model_take(&m, &moment);
}

uint32_t statement(uint32_t parent, const char *function, const char *text)
{
	static const char file[] = "/home/u/net.py";
	uint32_t line = ++ids;
	struct gmt_def_source s = { .line = line, .file_len = sizeof(file) - 1 };

	define(GMT_DEF_SOURCE, ++ids, &s, sizeof(s), file, text, NULL);
	return frame_at(parent, file, function, line);
}

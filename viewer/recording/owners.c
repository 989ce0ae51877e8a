/* SPDX-License-Identifier: Apache-2.0 */
#include "owners.h"

#include "../base/ending.h"

void owners_open(struct owners *o, struct stacks *stacks, struct defs *d)
{
	stacks_init(stacks, d, d->names ? d->names : symbols_new(d));
	*o = (struct owners){ .stacks = stacks };
}

void owners_close(struct owners *o)
{
	for (size_t i = 0; i < o->text_count; i++)
		free(o->texts[i]);
	free(o->texts);
	map_items_free(&o->found);
	if (o->stacks->symbols != o->stacks->defs->names)
		symbols_free(o->stacks->symbols);
	stacks_free(o->stacks);
}

const char *owners_base(const char *path)
{
	return ending_behind(path, '/');
}

/* Whether PyTorch's compiler wrote the file, so that its lines are not in the program:
 * torchinductor_me/ab/cab..., where the name is "c" and 51 digits of base 32. */
static bool is_generated(const char *file)
{
	const char *base = owners_base(file);
	size_t len = strspn(base, "abcdefghijklmnopqrstuvwxyz234567");

	return base[0] == 'c' && len >= 50 && !strcmp(base + len, ".py");
}

/* C:/Users/a/Python311/Lib/threading.py, C:/miniconda3/envs/a/lib/threading.py */
static bool is_windows_stdlib(const char *file)
{
	const char *lib = file[0] && file[1] == ':' ? strcasestr(file, "/lib/") : NULL;
	const char *python = lib ? strcasestr(file, "python") : NULL;
	const char *conda = lib ? strcasestr(file, "conda") : NULL;

	return (python && python < lib) || (conda && conda < lib);
}

bool owners_is_stdlib(const char *file)
{
	return !strstr(file, "-packages/") &&
	       (strstr(file, "/lib/python3") || is_windows_stdlib(file));
}

/* Installed packages, or parts of one, that only carry out what a model or a script wants. */
bool owners_is_plumbing(const char *file)
{
	static const char *const packages[] = {
		"torch/",
		"triton/",
		"functorch/",
		"transformers/modeling_utils.py",
		"accelerate/",
		"lightning/",
		"pytorch_lightning/",
		"transformers/trainer.py",
		"numba/",
		"numba_cuda/",
		"cupy/",
		"cupyx/",
		"cuda/",
		"pycuda/",
		"rmm/",
		"jax/",
		"jaxlib/",
		"tensorflow/",
		"keras/",
		NULL,
	};
	const char *package = strstr(file, "-packages/");

	return file[0] == '<' || !file[0] || (package && words_begin(package + 10, packages)) ||
	       owners_is_stdlib(file) || strstr(file, "/gpumemtrace-changes-"); /* of run --with */
}

static struct owner of_frame(const struct frame *f)
{
	return (struct owner){ f->function, f->file, f->line, false, false };
}

/* Whether a library only passes a request on. */
static bool is_messenger(const char *module)
{
	const char *base = owners_base(module);

	return !base[0] || words_begin(base, ONE_OF("libgpumemtrace.so", "libsimgpu.so",
						    "libcuda.so", "libcudart.so", "libc10_cuda.so",
						    "libc10.so", "libc.so", "libstdc++.so"));
}

/* "AddmmBackward0" of "torch::autograd::generated::AddmmBackward0::apply(...)", else NULL. Valid
 * until owners_close. */
static const char *backward_node(struct owners *o, const char *function)
{
	static const char space[] = "torch::autograd::generated::";
	const char *name = function + sizeof(space) - 1, *end;

	if (strncmp(function, space, sizeof(space) - 1) || !(end = strstr(name, "::apply")))
		return NULL;
	return *need_item(o->texts, o->text_count, o->text_room) = need_copy(name, end - name);
}

/* Whether a function only passes a request on: its name has no scope, or a known one, possibly
 * behind the return type. For PyTorch's snapshots, which do not name libraries. */
static bool passes_on(const char *function)
{
	const char *name = function, *end = function + strcspn(function, "(<");

	for (const char *c = function; c < end; c++)
		name = *c == ' ' ? c + 1 : name;
	return !strstr(name, "::") ||
	       words_begin(name, ONE_OF("torch::", "at::", "c10::", "std::", "pybind11::"));
}

/* The backward node if one is on the stack, else the first function that is no messenger's. */
static struct owner of_native(struct owners *o, uint64_t seq)
{
	struct stacks *s = o->stacks;
	const struct symbol *first = NULL, *named = NULL;

	for (size_t i = 0; i < s->count; i++) {
		const struct symbol *sym = symbols_find(s->symbols, s->frames[i].ip, seq);
		const char *node = backward_node(o, sym->function);

		if (node)
			return (struct owner){ .function = node, .file = "", .backward = true };
		if ((!first || !first->module[0]) && !is_messenger(s->frames[i].module))
			first = sym;
		if (!named && !s->frames[i].module[0] && !passes_on(sym->function))
			named = sym;
	}
	first = first ?: named;
	if (!first)
		return (struct owner){ .function = "", .file = "" };
	symbols_place(first);
	return (struct owner){ .function = first->function,
			       .file = first->file[0] ? first->file : first->module,
			       .line = first->line };
}

static struct owner of_stack(struct owners *o, uint32_t stack, uint64_t seq)
{
	struct stacks *s = o->stacks;

	const struct frame *generated = NULL;
	struct owner found;

	stacks_read_python(s, stack);
	for (size_t i = 0; i < s->count; i++) {
		if (is_generated(s->frames[i].file)) {
			generated = &s->frames[i];
		} else if (!owners_is_plumbing(s->frames[i].file)) {
			found = of_frame(&s->frames[i]);
			found.compiled = generated;
			return found;
		}
	}
	if (generated)
		return (struct owner){ .function = "compiled code",
				       .file = generated->file,
				       .compiled = true };
	if (s->count)
		return of_frame(&s->frames[0]);
	stacks_read_native(s, stack, seq);
	return of_native(o, seq);
}

/* Finds the owner of a block that a thread of autograd's engine allocated: the backward node. Such
 * a thread runs no Python except compiled code. False: the stack has other Python code. */
static bool of_backward(struct owners *o, const struct block *b, struct owner *out)
{
	bool compiled = false;

	if (b->memory || !b->name)
		return false;
	stacks_read_python(o->stacks, b->stack);
	for (size_t i = 0; i < o->stacks->count; i++) {
		const char *file = o->stacks->frames[i].file;

		compiled |= is_generated(file);
		if (!is_generated(file) && (!compiled || !owners_is_plumbing(file)))
			return false;
	}
	*out = (struct owner){ .function = compiled ? "compiled code"
						    : defs_string(o->stacks->defs, b->name).s,
			       .file = "",
			       .backward = true,
			       .compiled = compiled };
	return true;
}

struct owner owners_find(struct owners *o, const struct block *b)
{
	uint64_t key = (uint64_t)b->stack << 32 | (b->memory ? 0 : b->name);
	struct owner *found = map_item(&o->found, key);

	if (!found->function && !of_backward(o, b, found))
		*found = of_stack(o, b->stack, b->seq);
	return *found;
}

bool owners_is_forward(const char *function)
{
	return ending_is(function, ".forward") && !ending_is(function, "<locals>.forward");
}

/* Goes from the outermost frame inwards: a call of nn.Module, then the forward that it calls,
 * whatever wrappers lie between. */
size_t owners_modules(const struct stacks *s, const struct frame *forward[OWNER_MODULES])
{
	bool called = false;
	size_t n = 0;

	for (size_t i = s->count; i-- > 0 && n < OWNER_MODULES;) {
		const struct frame *f = &s->frames[i];

		if (ending_is(f->file, "torch/nn/modules/module.py")) {
			called = true;
		} else if (called && owners_is_forward(f->function)) {
			forward[n++] = f;
			called = false;
		}
	}
	return n;
}

struct defs_text owners_module_class(const struct frame *forward)
{
	const char *dot = strrchr(forward->function, '.'), *start = dot;

	while (start > forward->function && start[-1] != '.')
		start--;
	return (struct defs_text){ start, (size_t)(dot - start) };
}

const char *owners_module_path(const struct stacks *s, bool own, char *buf, size_t room)
{
	const struct frame *forward[OWNER_MODULES];
	size_t count = owners_modules(s, forward);

	buf[0] = 0;
	for (size_t i = 0; i < count; i++) {
		struct defs_text class = owners_module_class(forward[i]);

		if (!own || !owners_is_plumbing(forward[i]->file))
			text_add(buf, room, "%s%.*s", buf[0] ? "/" : "", (int)class.len, class.s);
	}
	return buf;
}

const char *owners_modules_of(struct owners *o, uint32_t stack, char *buf, size_t room)
{
	buf[0] = 0;
	if (!stack)
		return buf;
	stacks_read_python(o->stacks, stack);
	return owners_module_path(o->stacks, false, buf, room);
}

struct owner owners_caller(struct owners *o, uint32_t stack)
{
	struct owner caller = { .function = "", .file = "" };
	struct stacks *s = o->stacks;

	stacks_read_python(s, stack);
	for (size_t i = s->count; i-- > 0;) {
		if (owners_is_forward(s->frames[i].function))
			return caller;
		if (!owners_is_plumbing(s->frames[i].file))
			caller = of_frame(&s->frames[i]);
	}
	return (struct owner){ .function = "", .file = "" };
}

bool owners_same(const struct owner *a, const struct owner *b)
{
	return a->line == b->line && !strcmp(a->function, b->function) && !strcmp(a->file, b->file);
}

/* The function of libsimgpu.so that was called, else "". Its name shows the simulated library. */
static const char *simulated_library(struct owners *o, size_t count, uint64_t seq)
{
	const struct frame *call = NULL;

	for (size_t i = 0; i < count; i++)
		if (!strcmp(owners_base(o->stacks->frames[i].module), "libsimgpu.so"))
			call = &o->stacks->frames[i];
	return call ? symbols_find(o->stacks->symbols, call->ip, seq)->function : "";
}

const char *owners_library(struct owners *o, const struct block *b)
{
	static const char *const known[] = { "NCCL",	 "cuBLAS",   "cuDNN",  "cuFFT",
					     "cuSOLVER", "cuSPARSE", "cuRAND", "NVSHMEM" };
	struct stacks *s = o->stacks;
	const char *base = "", *call;

	stacks_read_native(s, b->stack, b->seq);
	call = simulated_library(o, s->count, b->seq);
	for (size_t i = 0; i < s->count && !base[0]; i++)
		if (!is_messenger(s->frames[i].module))
			base = owners_base(s->frames[i].module);
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (!strncasecmp(call, known[i], strlen(known[i])) ||
		    (!strncmp(base, "lib", 3) &&
		     !strncasecmp(base + 3, known[i], strlen(known[i]))))
			return known[i];
	return base[0] ? base : "(unknown)";
}

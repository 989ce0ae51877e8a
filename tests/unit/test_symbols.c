/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of addresses, judged by the dynamic linker (dladdr) and the compiler (__LINE__): this very
 * program is the object. Then stacks made of such addresses.
 * links: tests/unit/recordings.c
 */
#include "recordings.h"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <unistd.h>

#include "../../format/record.h"
#include "../../viewer/recording/symbols.h"
#include "../../viewer/recording/stacks.h"

struct object {
	const void *address; /* wanted: the object that holds it */
	uint64_t start, end, bias;
	uint8_t id[64];
	size_t id_len;
	char path[4096];
};

static void note_id(struct object *o, const char *note, size_t len)
{
	for (size_t at = 0; at + sizeof(ElfW(Nhdr)) < len;) {
		const ElfW(Nhdr) *n = (const void *)(note + at);
		size_t name = (n->n_namesz + 3) & ~3u;

		if (n->n_type == NT_GNU_BUILD_ID && n->n_namesz == 4 && n->n_descsz <= 64) {
			memcpy(o->id, note + at + sizeof(*n) + name, n->n_descsz);
			o->id_len = n->n_descsz;
		}
		at += sizeof(*n) + name + ((n->n_descsz + 3) & ~3u);
	}
}

static int note_object(struct dl_phdr_info *info, size_t size, void *ctx)
{
	struct object *o = ctx, this = { .start = UINT64_MAX, .bias = info->dlpi_addr };

	(void)size;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		uint64_t start = info->dlpi_addr + p->p_vaddr;

		if (p->p_type == PT_NOTE)
			note_id(&this, (const char *)start, p->p_memsz);
		if (p->p_type != PT_LOAD)
			continue;
		this.start = start < this.start ? start : this.start;
		this.end = start + p->p_memsz > this.end ? start + p->p_memsz : this.end;
	}
	if ((uint64_t)o->address < this.start || (uint64_t)o->address >= this.end)
		return 0;
	snprintf(this.path, sizeof(this.path), "%s",
		 info->dlpi_name[0] ? info->dlpi_name : "/proc/self/exe");
	*o = this;
	return 1;
}

static struct object object_of(const void *address)
{
	struct object o = { .address = address };

	assert_int_equal(dl_iterate_phdr(note_object, &o), 1);
	return o;
}

static void define_module(struct defs *d, uint32_t id, const struct object *o, uint64_t seq)
{
	char payload[sizeof(struct gmt_def_module) + 64 + 4096];
	struct gmt_def_module head = {
		o->start, o->end, o->bias, seq, (uint16_t)o->id_len, (uint16_t)strlen(o->path)
	};
	struct gmt_def def = { GMT_DEF_MODULE, id, sizeof(head) + o->id_len + strlen(o->path),
			       payload };

	memcpy(payload, &head, sizeof(head));
	memcpy(payload + sizeof(head), o->id, o->id_len);
	memcpy(payload + sizeof(head) + o->id_len, o->path, strlen(o->path));
	defs_add(d, &def);
}

static uint64_t here;
static unsigned here_line;

static __attribute__((noinline)) void stand_here(void)
{
	here = (uint64_t)__builtin_return_address(0);
}

static __attribute__((noinline)) void caller_of_it(void)
{
	stand_here();
	here_line = __LINE__ - 1;
	__asm__ volatile("" ::: "memory");
}

static void functions_and_lines(void **state)
{
	struct defs d = { 0 };
	struct object o = object_of((void *)caller_of_it);
	const struct symbol *sym;
	struct symbols *s;

	(void)state;
	caller_of_it();
	define_module(&d, 1, &o, 0);
	s = symbols_new(&d);
	sym = symbols_place(symbols_find(s, here, UINT64_MAX));
	assert_string_equal(sym->function, "caller_of_it");
	assert_non_null(strstr(sym->file, "test_symbols.c"));
	assert_int_equal(sym->line, here_line);
	assert_ptr_equal(symbols_find(s, here, UINT64_MAX), sym);
	sym = symbols_find(s, 0x10, UINT64_MAX);
	assert_string_equal(sym->function, "");
	assert_string_equal(sym->module, "");
	symbols_free(s);
	defs_free(&d);
}

/* Functions of the C library: the dynamic linker finds the same function by the name that we found.
 */
static void libc_by_dlsym(void **state)
{
	static const char *const names[] = {
		"printf", "qsort", "getenv", "strtod", "fopen", "mmap"
	};
	struct defs d = { 0 };
	struct object o = object_of(dlsym(RTLD_DEFAULT, "gnu_get_libc_version"));
	struct symbols *s;

	(void)state;
	define_module(&d, 1, &o, 0);
	s = symbols_new(&d);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		char *function = dlsym(RTLD_DEFAULT, names[i]);
		const char *found;

		if (strcmp(object_of(function).path, o.path))
			continue; /* a sanitizer's own */
		found = symbols_find(s, (uint64_t)function + 2, UINT64_MAX)->function;
		assert_true(!strcmp(found, names[i]) || dlsym(RTLD_DEFAULT, found) == function);
	}
	symbols_free(s);
	defs_free(&d);
}

static void another_build_has_no_names(void **state)
{
	struct defs d = { 0 };
	struct object o = object_of((void *)caller_of_it);
	struct symbols *s;

	(void)state;
	if (!o.id_len)
		skip();
	o.id[0] ^= 1;
	define_module(&d, 1, &o, 0);
	s = symbols_new(&d);
	assert_string_equal(symbols_find(s, (uint64_t)caller_of_it + 4, 0)->function, "");
	assert_non_null(strstr(symbols_find(s, (uint64_t)caller_of_it + 4, 0)->module, "exe"));
	symbols_free(s);
	defs_free(&d);
	assert_null(elf_names_open("/nonexistent", NULL, 0));
	assert_null(elf_names_open("/etc/passwd", NULL, 0));
	assert_null(elf_names_open("/", NULL, 0));
}

/* Another program may cut a library while its names are read: they are missing then, and that is
 * all. */
static void library_is_cut_meanwhile(void **state)
{
	char path[] = "/tmp/gpumemtrace-symbols-XXXXXX", text[1 << 16];
	struct object o = object_of((void *)caller_of_it);
	uint64_t address = (uint64_t)caller_of_it + 4 - o.bias;
	int from = open("/proc/self/exe", O_RDONLY), to = mkstemp(path);
	struct elf_names *names;
	unsigned line;
	ssize_t n;

	(void)state;
	while ((n = read(from, text, sizeof(text))) > 0)
		assert_int_equal(write(to, text, (size_t)n), n);
	for (int cut = 0; cut < 2; cut++) {
		names = elf_names_open(path, o.id, o.id_len);
		assert_non_null(names);
		assert_int_equal(ftruncate(to, cut ? 0 : lseek(to, 0, SEEK_END)), 0);
		assert_true(cut || elf_names_function(names, address));
		if (cut)
			elf_names_function(names, address);
		elf_names_line(names, address, &line);
		elf_names_close(names);
	}
	close(from);
	close(to);
	unlink(path);
}

/* Two objects at one address, one after the other. */
static void address_of_another_object_before(void **state)
{
	struct object first = { .start = 0x1000, .end = 0x2000, .path = "/first.so" };
	struct object second = { .start = 0x1800, .end = 0x3000, .path = "/second.so" };
	struct defs d = { 0 };
	struct symbols *s;

	(void)state;
	define_module(&d, 1, &first, 10);
	define_module(&d, 2, &second, 500);
	s = symbols_new(&d);
	assert_string_equal(symbols_find(s, 0x1900, 499)->module, "/first.so");
	assert_string_equal(symbols_find(s, 0x1900, 500)->module, "/second.so");
	assert_string_equal(symbols_find(s, 0x1900, 1)->module, "/first.so");
	assert_string_equal(symbols_find(s, 0x2900, 1)->module, "/second.so");
	assert_string_equal(symbols_find(s, 0x1100, 900)->module, "/first.so");
	assert_string_equal(symbols_find(s, 0x2000, 499)->module,
			    "/first.so"); /* the call ended it */
	symbols_free(s);
	defs_free(&d);
}

static void define_function(struct defs *d, uint64_t address, const char *name)
{
	char payload[128];
	struct gmt_def_function head = { address };
	struct gmt_def def = { GMT_DEF_FUNCTION, 1, sizeof(head) + strlen(name), payload };

	memcpy(payload, &head, sizeof(head));
	memcpy(payload + sizeof(head), name, strlen(name));
	defs_add(d, &def);
}

/* The names that the recording holds are of what was mapped there at the program's end. */
static void names_without_the_file(void **state)
{
	struct object first = { .start = 0x1000, .end = 0x2000, .path = "/first.so" };
	struct object second = { .start = 0x1800, .end = 0x3000, .path = "/second.so" };
	struct object here_now = object_of((void *)caller_of_it);
	struct defs d = { 0 };
	struct symbols *s;

	(void)state;
	caller_of_it();
	define_module(&d, 1, &first, 10);
	define_module(&d, 2, &second, 500);
	define_module(&d, 3, &here_now, 1);
	define_function(&d, 0x1900, "_ZN2at5emptyEl");
	define_function(&d, 0x1100, "of_first");
	define_function(&d, here, "another_name");
	s = symbols_new(&d);
	assert_string_equal(symbols_find(s, 0x1900, 600)->function, "at::empty(long)");
	assert_string_equal(symbols_find(s, 0x1900, 600)->raw, "_ZN2at5emptyEl");
	assert_string_equal(symbols_find(s, 0x1900, 499)->function, "");
	assert_string_equal(symbols_find(s, 0x1100, 600)->function, "of_first");
	assert_string_equal(symbols_find(s, 0x1104, 600)->function, "");
	assert_string_equal(symbols_find(s, here, 600)->function, "caller_of_it");
	symbols_free(s);
	defs_free(&d);
}

static void names_of_cpp(void **state)
{
	char *name = demangle("_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE");

	(void)state;
	assert_null(demangle("main"));
	assert_null(demangle("_Znonsense"));
	if (!name)
		skip();
	assert_string_equal(name,
			    "c10::reportMemoryUsageToProfiler(void*, long, unsigned long, unsigned "
			    "long, c10::Device)");
	free(name);
}

static void brief_names(void **state)
{
	char b[200];

	(void)state;
	assert_string_equal(demangle_brief("main", b, sizeof(b)), "main");
	assert_string_equal(
		demangle_brief("at::_ops::addmm::call(at::Tensor const&, long)", b, 200),
		"at::_ops::addmm::call");
	assert_string_equal(demangle_brief("void a<b<c>, (d)1>::e<f>(g<h>)", b, 200),
			    "void a<>::e<>");
	assert_string_equal(demangle_brief("x::(anonymous namespace)::y(z)", b, 200),
			    "x::(anonymous namespace)::y");
	assert_string_equal(demangle_brief("f::operator()(int) const", b, 200), "f::operator()");
	assert_string_equal(demangle_brief("g::operator<(int)", b, 200), "g::operator<");
	assert_true(
		strlen(demangle_brief("a_name_that_is_much_longer_than_there_is_room_for_it_here",
				      b, 60)) < 60);
}

/* Stacks: n native frames (innermost first), p Python frames, merged. */

static void node(struct defs *d, uint32_t id, uint32_t parent, unsigned frame, uint64_t value)
{
	struct gmt_def_stack payload = { value, parent, frame };
	struct gmt_def def = { GMT_DEF_STACK, id, sizeof(payload), &payload };

	defs_add(d, &def);
}

static void code(struct defs *d, uint32_t id, const char *name)
{
	char payload[sizeof(struct gmt_def_code) + 64];
	struct gmt_def_code head = { 10 * id, 0x30b, 0, 1, (uint32_t)strlen(name), 0 };
	struct gmt_def def = { GMT_DEF_CODE, id, sizeof(head) + 1 + strlen(name), payload };

	memcpy(payload, &head, sizeof(head));
	payload[sizeof(head)] = 'f';
	memcpy(payload + sizeof(head) + 1, name, strlen(name));
	defs_add(d, &def);
}

/* Stand-ins for the interpreter's functions; only their names matter. */
void _PyEval_EvalFrameDefault(void);
void _TAIL_CALL_CALL(void);
void _TAIL_CALL_RETURN(void);
__attribute__((noinline)) void _PyEval_EvalFrameDefault(void)
{
	__asm__ volatile("nop;nop;nop;nop;nop;nop;nop;nop");
}
__attribute__((noinline)) void _TAIL_CALL_CALL(void)
{
	__asm__ volatile("nop;nop;nop;nop;nop;nop;nop;nop");
}
__attribute__((noinline)) void _TAIL_CALL_RETURN(void)
{
	__asm__ volatile("nop;nop;nop;nop;nop;nop;nop;nop;nop");
}
static __attribute__((noinline)) void own_code(void)
{
	__asm__ volatile("nop;nop;nop;nop;nop;nop;nop;nop");
}

#define IN(f)		  ((uint64_t)(f) + 4)
#define PYTHON(id, entry) ((uint64_t)(id) << 32 | (entry))

/* Both chains innermost first and ended by 0; the merged functions as "a b c". */
static const char *merged(const uint64_t *native, const uint64_t *python)
{
	static char text[1024];
	struct object o = object_of((void *)own_code);
	struct defs d = { 0 };
	struct stacks s;
	uint32_t id = 0, native_top = 0, python_top = 0;
	size_t n = 0, p = 0;

	define_module(&d, 1, &o, 0);
	for (uint32_t i = 1; i <= 5; i++)
		code(&d, i, (const char *[]){ "", "a", "b", "c", "d", "e" }[i]);
	while (native && native[n])
		n++;
	while (python && python[p])
		p++;
	for (; n-- > 0; native_top = id)
		node(&d, ++id, native_top, GMT_FRAME_NATIVE, native[n]);
	for (; p-- > 0; python_top = id)
		node(&d, ++id, python_top, GMT_FRAME_PYTHON, python[p]);
	if (native_top && python_top)
		node(&d, ++id, native_top, GMT_FRAME_JOIN, python_top);
	stacks_init(&s, &d, symbols_new(&d));
	stacks_read(&s, id, 1);
	text[0] = 0;
	for (size_t i = 0; i < s.count; i++)
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%s", i ? " " : "",
			 s.frames[i].function);
	symbols_free(s.symbols);
	stacks_free(&s);
	defs_free(&d);
	return text;
}

#define LIST(...)              \
	(const uint64_t[])     \
	{                      \
		__VA_ARGS__, 0 \
	}

static void stacks_are_merged(void **state)
{
	const uint64_t own = IN(own_code), eval = IN(_PyEval_EvalFrameDefault);

	(void)state;
	/* 3.11 and later: one call of the interpreter runs several Python frames */
	assert_string_equal(merged(LIST(own, eval, own, eval, own),
				   LIST(PYTHON(1, 0), PYTHON(2, 1), PYTHON(3, 0), PYTHON(4, 1))),
			    "own_code a b own_code c d own_code");
	/* before: one each */
	assert_string_equal(merged(LIST(own, eval, own, eval), LIST(PYTHON(1, 1), PYTHON(2, 1))),
			    "own_code a own_code b");
	/* two calls of the interpreter that follow each other */
	assert_string_equal(merged(LIST(eval, eval, own), LIST(PYTHON(1, 1), PYTHON(2, 1))),
			    "a b own_code");
	/* more interpreters than entries; more Python frames than interpreters */
	assert_string_equal(merged(LIST(own, eval, own, eval), LIST(PYTHON(1, 1))),
			    "own_code a own_code");
	assert_string_equal(
		merged(LIST(own, eval, own), LIST(PYTHON(1, 1), PYTHON(2, 0), PYTHON(3, 1))),
		"own_code a own_code b c");
	assert_string_equal(merged(LIST(own, own), NULL), "own_code own_code");
	assert_string_equal(merged(NULL, LIST(PYTHON(1, 0), PYTHON(2, 1))), "a b");
}

static void tail_calls_are_one_interpreter(void **state)
{
	const uint64_t own = IN(own_code), a = IN(_TAIL_CALL_CALL), b = IN(_TAIL_CALL_RETURN);

	(void)state;
	assert_string_equal(merged(LIST(own, a, b, own, b, own),
				   LIST(PYTHON(1, 0), PYTHON(2, 1), PYTHON(3, 1))),
			    "own_code a b own_code c own_code");
}

/* A tree that runs in a circle, and ids that are not there. */
static void broken_trees_end(void **state)
{
	struct defs d = { 0 };
	struct stacks s;

	(void)state;
	node(&d, 1, 2, GMT_FRAME_NATIVE, 5);
	node(&d, 2, 1, GMT_FRAME_NATIVE, 6);
	node(&d, 3, 3, GMT_FRAME_JOIN, 3);
	node(&d, 4, 77, GMT_FRAME_PYTHON, ~0ull);
	node(&d, 5, 1, 99, 1);
	stacks_init(&s, &d, symbols_new(&d));
	for (uint32_t id = 0; id < 8; id++) {
		stacks_read(&s, id, 0);
		assert_true(s.count <= STACKS_DEPTH);
	}
	stacks_read(&s, 4, 0);
	assert_int_equal(s.count, 1);
	symbols_free(s.symbols);
	stacks_free(&s);
	defs_free(&d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(functions_and_lines),
		cmocka_unit_test(libc_by_dlsym),
		cmocka_unit_test(another_build_has_no_names),
		cmocka_unit_test(library_is_cut_meanwhile),
		cmocka_unit_test(address_of_another_object_before),
		cmocka_unit_test(names_without_the_file),
		cmocka_unit_test(names_of_cpp),
		cmocka_unit_test(brief_names),
		cmocka_unit_test(stacks_are_merged),
		cmocka_unit_test(tail_calls_are_one_interpreter),
		cmocka_unit_test(broken_trees_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

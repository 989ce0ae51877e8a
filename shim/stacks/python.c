/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the interpreter and the place of its frames. Before the first walk is used, the chain is
 * followed by reads that cannot fault, and every object on the way must have the expected type;
 * else Python stacks stay off. Application threads, any lock held, GIL held or not.
 */
#include "python.h"

#include "../base/elfsym.h"
#include "../base/file.h"
#include "../base/os.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { UNCHECKED = 0, RIGHT = 1, WRONG = 2 };

static struct {
	bool found;
	int checked;
	void *(*this_thread)(void); /* this OS thread's state, right without the GIL too */
	int (*finalizing)(void);
	uintptr_t code_type, str_type, bytes_type, types[PYTHON_TYPES];
	uintptr_t start, end; /* of the object that holds them */
	struct python_offsets at;
	char version[16];
	const char *trouble;
} py = { .trouble = "there is no Python in this process" };

const char *python_trouble(void)
{
	return __atomic_load_n(&py.trouble, __ATOMIC_ACQUIRE);
}

const char *python_version(void)
{
	return py.version[0] ? py.version : NULL;
}

const struct python_offsets *python_layout(void)
{
	return &py.at;
}

/* Before ~3.11 there is only the function, which returns a constant text and needs no GIL. */
static int minor_version(void *handle)
{
	const unsigned long *hex = dlsym(handle, "Py_Version");
	const char *(*text)(void) = (const char *(*)(void))dlsym(handle, "Py_GetVersion");

	if (hex && *hex >> 24 == 3)
		return (int)(*hex >> 16 & 0xff);
	if (!hex && text && !strncmp(text(), "3.", 2))
		return atoi(text() + 2);
	return -1;
}

static int note_range(struct dl_phdr_info *info, size_t size, void *ctx)
{
	(void)size, (void)ctx;
	if (!elfsym_holds(info, py.str_type))
		return 0;
	py.start = UINTPTR_MAX;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		uintptr_t start = info->dlpi_addr + p->p_vaddr;

		if (p->p_type != PT_LOAD)
			continue;
		py.start = start < py.start ? start : py.start;
		py.end = start + p->p_memsz > py.end ? start + p->p_memsz : py.end;
	}
	return 1;
}

bool python_is_static(uintptr_t address)
{
	return address >= py.start && address < py.end;
}

uintptr_t python_type(enum python_type type)
{
	return py.types[type];
}

static bool find_in(void *handle)
{
	int minor = minor_version(handle);

	py.this_thread = (void *(*)(void))dlsym(handle, "PyGILState_GetThisThreadState");
	py.finalizing = (int (*)(void))dlsym(handle, "_Py_IsFinalizing");
	if (!py.finalizing)
		py.finalizing = (int (*)(void))dlsym(handle, "Py_IsFinalizing");
	py.code_type = (uintptr_t)dlsym(handle, "PyCode_Type");
	py.str_type = (uintptr_t)dlsym(handle, "PyUnicode_Type");
	py.bytes_type = (uintptr_t)dlsym(handle, "PyBytes_Type");
	py.types[PYTHON_CELL] = (uintptr_t)dlsym(handle, "PyCell_Type");
	py.types[PYTHON_LIST] = (uintptr_t)dlsym(handle, "PyList_Type");
	py.types[PYTHON_DICT] = (uintptr_t)dlsym(handle, "PyDict_Type");
	py.types[PYTHON_TUPLE] = (uintptr_t)dlsym(handle, "PyTuple_Type");
	if (minor < 0 || !py.this_thread || !py.finalizing || !py.code_type || !py.str_type ||
	    !py.bytes_type)
		return false;
	snprintf(py.version, sizeof(py.version), "3.%d", minor);
	if (!python_offsets_for(&py.at, minor, dlsym(handle, "_PyRuntime"))) {
		py.trouble = "this version of Python has a layout that is not verified";
		return false;
	}
	dl_iterate_phdr(note_range, NULL);
	__atomic_store_n(&py.trouble, NULL, __ATOMIC_RELEASE);
	return true;
}

/* A program that loads libpython itself might keep its symbols out of the global scope. */
static bool find_hidden(void)
{
	char name[32];

	for (int minor = 9; minor <= 14; minor++) {
		void *handle;
		bool ok;

		snprintf(name, sizeof(name), "libpython3.%d.so.1.0", minor);
		handle = dlopen(name, RTLD_LAZY | RTLD_NOLOAD);
		ok = handle && find_in(handle);
		if (handle && !ok)
			dlclose(handle);
		if (ok)
			return true;
	}
	return false;
}

void python_find(bool everywhere)
{
	if (!py.found && !py.version[0] && (find_in(RTLD_DEFAULT) || (everywhere && find_hidden())))
		__atomic_store_n(&py.found, true, __ATOMIC_RELEASE);
}

static uintptr_t first_frame(uintptr_t thread)
{
	uintptr_t frame = file_peek_word(thread + (uintptr_t)py.at.thread_frame);

	return py.at.cframe_frame >= 0 && frame
		       ? file_peek_word(frame + (uintptr_t)py.at.cframe_frame)
		       : frame;
}

static bool has_type(uintptr_t object, uintptr_t type)
{
	return object && file_peek_word(object + (uintptr_t)py.at.object_type) == type;
}

/* Finds a str's three kind bits, whose place differs by build: only one place gives a valid
 * kind. */
static bool learn_kind_shift(uintptr_t str)
{
	static const uint16_t shifts[] = { 2, 8, 16 };
	uint32_t state = (uint32_t)file_peek_word(str + (uintptr_t)py.at.str_state);

	for (unsigned i = 0; i < 3; i++) {
		uint32_t bits = state >> shifts[i], kind = bits & 7;

		if ((kind == 1 || kind == 2 || kind == 4) && bits & 8) {
			__atomic_store_n(&py.at.kind_shift, shifts[i], __ATOMIC_RELAXED);
			return true;
		}
	}
	return false;
}

static bool code_is_right(uintptr_t code)
{
	const struct python_offsets *o = &py.at;
	uintptr_t file = file_peek_word(code + (uintptr_t)o->code_file);
	int name_at = o->code_qualname >= 0 ? o->code_qualname : o->code_name;

	return has_type(code, py.code_type) && has_type(file, py.str_type) &&
	       has_type(file_peek_word(code + (uintptr_t)name_at), py.str_type) &&
	       has_type(file_peek_word(code + (uintptr_t)o->code_table), py.bytes_type) &&
	       learn_kind_shift(file);
}

/* UNCHECKED: there is no frame to check yet. */
static int check_chain(uintptr_t thread)
{
	const struct python_offsets *o = &py.at;
	uintptr_t frame;
	int result = UNCHECKED;

	if (file_peek_word(thread + (uintptr_t)o->thread_id) != (uintptr_t)pthread_self())
		return WRONG;
	frame = first_frame(thread);
	for (int i = 0; frame && i < 64; i++) {
		uintptr_t code =
			file_peek_word(frame + (uintptr_t)o->frame_code) & ~(uintptr_t)o->tag_mask;
		uint8_t owner = 0;

		if (o->frame_owner >= 0 && !file_peek(&owner, frame + (uintptr_t)o->frame_owner, 1))
			return WRONG;
		if (owner < o->shim_owner && !code_is_right(code))
			return WRONG;
		if (owner < o->shim_owner)
			result = RIGHT;
		frame = file_peek_word(frame + (uintptr_t)o->frame_back);
	}
	return result;
}

static __attribute__((noinline)) bool check(uintptr_t thread)
{
	int checked = check_chain(thread);

	if (checked == WRONG)
		__atomic_store_n(&py.trouble,
				 "the interpreter's structures are not where they should be",
				 __ATOMIC_RELEASE);
	__atomic_store_n(&py.checked, checked, __ATOMIC_RELEASE);
	return checked == RIGHT;
}

uintptr_t python_thread(void)
{
	int checked = __atomic_load_n(&py.checked, __ATOMIC_ACQUIRE);
	uintptr_t thread;

	if (!__atomic_load_n(&py.found, __ATOMIC_ACQUIRE) || checked == WRONG)
		return 0;
	thread = (uintptr_t)py.this_thread();
	if (!thread || py.finalizing())
		return 0;
	return OS_LIKELY(checked == RIGHT) || check(thread) ? thread : 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records NVTX ranges and marks. NVTX_INJECTION64_PATH makes NVTX load this library and call
 * InitializeInjectionNvtx2 once, which puts our functions into NVTX's tables. Application threads;
 * a range alone never begins a recording.
 */
#include "nvtx.h"

#include "../../format/record.h"
#include "../base/config.h"
#include "../recording/ranges.h"
#include "../rings/thread_room.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <wchar.h>

#define DEPTH_MOST 64u
#define TEXT_MOST  1024u

/* NVTX's ABI: an attribute struct of 48 bytes or more. */
struct attributes {
	uint16_t version, size;
	uint32_t category;
	int32_t color_type;
	uint32_t color;
	int32_t payload_type, reserved;
	uint64_t payload;
	int32_t message_type;
	const void *message;
};

enum message { MESSAGE_ASCII = 1, MESSAGE_WIDE = 2, MESSAGE_REGISTERED = 3 };
enum { TABLE_CALLBACKS = 1, MODULE_CORE = 1, MODULE_CORE2 = 5 };

struct callbacks {
	size_t size;
	int (*module_table)(int module, void (***table[])(void), unsigned *count);
};

struct open_range {
	uint32_t number, name;
	const void *domain;
};

/* Ranges that are pushed on this thread. Ranges deeper than DEPTH_MOST are only counted. */
struct pushed {
	struct open_range ranges[DEPTH_MOST];
	uint32_t depth, beyond;
};

_Static_assert(sizeof(struct pushed) <= sizeof(((struct thread_room *)0)->nvtx), "its room");

static uint32_t narrow(const char *text)
{
	return text ? gmt_string(text, strnlen(text, TEXT_MOST)) : 0;
}

/* Wide text as ASCII; other characters become question marks. */
static uint32_t wide(const wchar_t *text)
{
	char copy[TEXT_MOST];
	size_t n = 0;

	for (; text && text[n] && n < sizeof(copy); n++)
		copy[n] = text[n] > 0 && text[n] < 128 ? (char)text[n] : '?';
	return text ? gmt_string(copy, n) : 0;
}

/* A registered string's handle is its id and the generation that it belongs to. */
static void *handle_of(uint32_t id)
{
	return (void *)((uintptr_t)gmt_generation() << 32 | id);
}

static uint32_t registered(const void *handle)
{
	return (uintptr_t)handle >> 32 == gmt_generation() ? (uint32_t)(uintptr_t)handle : 0;
}

static uint32_t message_of(const struct attributes *a)
{
	if (!a)
		return 0;
	if (a->message_type == MESSAGE_ASCII)
		return narrow(a->message);
	if (a->message_type == MESSAGE_WIDE)
		return wide(a->message);
	return a->message_type == MESSAGE_REGISTERED ? registered(a->message) : 0;
}

static void mark(uint32_t name)
{
	range_record(GMT_MARK, GMT_RANGE_NVTX, 0, name);
}

static uint64_t start(uint32_t name)
{
	uint32_t number = range_number();

	range_record(GMT_RANGE_BEGIN, GMT_RANGE_NVTX, number, name);
	return (uint64_t)name << 32 | number;
}

static int push(const void *domain, uint32_t name)
{
	struct thread_room *room = thread_room();
	struct pushed *p = room ? (struct pushed *)room->nvtx : NULL;
	struct open_range r = { range_number(), name, domain };

	if (!p)
		return -1;
	if (p->depth == DEPTH_MOST)
		return (int)(DEPTH_MOST + p->beyond++);
	p->ranges[p->depth] = r;
	range_record(GMT_RANGE_BEGIN, GMT_RANGE_NVTX, r.number, name);
	return (int)p->depth++;
}

/* Ends the innermost range of this domain. */
static int pop(const void *domain)
{
	struct thread_room *room = thread_room_used();
	struct pushed *p = room ? (struct pushed *)room->nvtx : NULL;
	uint32_t i = p ? p->depth : 0;
	struct open_range r;

	if (p && p->beyond)
		return (int)(DEPTH_MOST + --p->beyond);
	while (i > 0 && p->ranges[i - 1].domain != domain)
		i--;
	if (!i)
		return -1;
	r = p->ranges[i - 1];
	memmove(&p->ranges[i - 1], &p->ranges[i], (p->depth - i) * sizeof(r));
	p->depth--;
	range_record(GMT_RANGE_END, GMT_RANGE_NVTX, r.number, r.name);
	return (int)p->depth;
}

static void mark_ex(const struct attributes *a)
{
	mark(message_of(a));
}

static void mark_a(const char *text)
{
	mark(narrow(text));
}

static void mark_w(const wchar_t *text)
{
	mark(wide(text));
}

static uint64_t start_ex(const struct attributes *a)
{
	return start(message_of(a));
}

static uint64_t start_a(const char *text)
{
	return start(narrow(text));
}

static uint64_t start_w(const wchar_t *text)
{
	return start(wide(text));
}

static void range_end(uint64_t id)
{
	range_record(GMT_RANGE_END, GMT_RANGE_NVTX, (uint32_t)id, (uint32_t)(id >> 32));
}

static int push_ex(const struct attributes *a)
{
	return push(NULL, message_of(a));
}

static int push_a(const char *text)
{
	return push(NULL, narrow(text));
}

static int push_w(const wchar_t *text)
{
	return push(NULL, wide(text));
}

static int pop_default(void)
{
	return pop(NULL);
}

static void domain_mark(const void *domain, const struct attributes *a)
{
	(void)domain;
	mark(message_of(a));
}

static uint64_t domain_start(const void *domain, const struct attributes *a)
{
	(void)domain;
	return start(message_of(a));
}

static void domain_end(const void *domain, uint64_t id)
{
	(void)domain;
	range_end(id);
}

static int domain_push(const void *domain, const struct attributes *a)
{
	return push(domain, message_of(a));
}

static void *register_a(const void *domain, const char *text)
{
	(void)domain;
	return handle_of(narrow(text));
}

static void *register_w(const void *domain, const wchar_t *text)
{
	(void)domain;
	return handle_of(wide(text));
}

static void *create_a(const char *name)
{
	return handle_of(narrow(name));
}

static void *create_w(const wchar_t *name)
{
	return handle_of(wide(name));
}

/* NVTX's numbers of the calls in its tables. */
static const struct entry {
	int module;
	unsigned call;
	void *function;
} entries[] = {
	{ MODULE_CORE, 1, mark_ex },	   { MODULE_CORE, 2, mark_a },
	{ MODULE_CORE, 3, mark_w },	   { MODULE_CORE, 4, start_ex },
	{ MODULE_CORE, 5, start_a },	   { MODULE_CORE, 6, start_w },
	{ MODULE_CORE, 7, range_end },	   { MODULE_CORE, 8, push_ex },
	{ MODULE_CORE, 9, push_a },	   { MODULE_CORE, 10, push_w },
	{ MODULE_CORE, 11, pop_default },  { MODULE_CORE2, 1, domain_mark },
	{ MODULE_CORE2, 2, domain_start }, { MODULE_CORE2, 3, domain_end },
	{ MODULE_CORE2, 4, domain_push },  { MODULE_CORE2, 5, pop },
	{ MODULE_CORE2, 10, register_a },  { MODULE_CORE2, 11, register_w },
	{ MODULE_CORE2, 12, create_a },	   { MODULE_CORE2, 13, create_w },
};

__attribute__((visibility("default"))) int
InitializeInjectionNvtx2(const void *(*export_table)(uint32_t id));

int InitializeInjectionNvtx2(const void *(*export_table)(uint32_t id))
{
	const struct callbacks *c = export_table(TABLE_CALLBACKS);

	if (!c || c->size < sizeof(*c) || !gmt_recording() || !gmt_config.nvtx)
		return 0;
	for (unsigned i = 0; i < sizeof(entries) / sizeof(entries[0]); i++) {
		void (***table)(void) = NULL;
		unsigned count = 0;

		if (c->module_table(entries[i].module, (void (***(*))(void)) & table, &count) &&
		    table && entries[i].call < count && table[entries[i].call])
			*table[entries[i].call] = (void (*)(void))entries[i].function;
	}
	return 1;
}

/* Runs before the program has threads, so that setenv is safe. LD_PRELOAD often names this library
 * relative to the working directory. */
void nvtx_setup(void)
{
	char path[8192];
	Dl_info self;
	size_t n = 0;

	if (!gmt_config.nvtx || !dladdr(entries, &self))
		return;
	if (self.dli_fname[0] != '/') {
		if (!getcwd(path, sizeof(path) / 2))
			return;
		n = strlen(path);
		path[n++] = '/';
	}
	if (strlen(self.dli_fname) >= sizeof(path) - n)
		return;
	strcpy(path + n, self.dli_fname);
	setenv("NVTX_INJECTION64_PATH", path, 0);
}

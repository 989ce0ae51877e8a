/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A sorted list of the mapped objects' ranges, replaced as a whole when objects come and go and
 * read without a lock. Replaced lists are not freed, because a thread might be reading them.
 *
 * Scans run on application threads too. dl_iterate_phdr takes only the loader's short inner lock,
 * never the one that is held while constructors run.
 */
#include "modules.h"

#include "../../format/record.h"
#include "../base/forkgate.h"
#include "../base/intern.h"

#include <elf.h>
#include <limits.h>
#include <link.h>
#include <string.h>
#include <unistd.h>

#define BUILD_ID_MOST 64u

struct module_map {
	unsigned long long adds, subs; /* the loader's counters when it was made */
	uint32_t count, room;
	struct cfi_table ranges[];
};

struct scan {
	bool (*emit)(const struct gmt_def *d);
	struct module_map *map;
	unsigned long long adds, subs;
	uint32_t seen;
};

static struct module_map *current;
static struct intern_table defined;
static bool saw_python;
static unsigned long long last_subs;

/* Unloads in progress in the low 16 bits, above them a number that each unload changes. */
static uint64_t unloads;
#define ONE_MORE (1u << 16)

static const struct cfi_table *module_table_of(const struct module_map *m, uintptr_t ip)
{
	uint32_t low = 0, high = m ? m->count : 0;

	while (low < high) {
		uint32_t middle = (low + high) / 2;

		if (ip < m->ranges[middle].start)
			high = middle;
		else if (ip >= m->ranges[middle].end)
			low = middle + 1;
		else
			return &m->ranges[middle];
	}
	return NULL;
}

static void insert(struct module_map *m, struct cfi_table r)
{
	uint32_t i = m->count;

	if (m->count == m->room)
		return;
	for (; i > 0 && m->ranges[i - 1].start > r.start; i--)
		m->ranges[i] = m->ranges[i - 1];
	m->ranges[i] = r;
	m->count++;
}

static struct cfi_table range_of(const struct dl_phdr_info *info)
{
	struct cfi_table r = { UINTPTR_MAX, 0, 0 };

	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		uintptr_t start = info->dlpi_addr + p->p_vaddr;

		if (p->p_type == PT_GNU_EH_FRAME)
			r.header = start;
		if (p->p_type != PT_LOAD)
			continue;
		r.start = start < r.start ? start : r.start;
		r.end = start + p->p_memsz > r.end ? start + p->p_memsz : r.end;
	}
	return r;
}

static uint16_t id_in_notes(const uint8_t *p, size_t left, size_t align, uint8_t *out)
{
	while (left >= sizeof(ElfW(Nhdr))) {
		const ElfW(Nhdr) *n = (const ElfW(Nhdr) *)p;
		size_t name = (n->n_namesz + align - 1) & ~(align - 1);
		size_t all = sizeof(*n) + name + ((n->n_descsz + align - 1) & ~(align - 1));

		if (n->n_type == NT_GNU_BUILD_ID && n->n_namesz == 4 &&
		    !memcmp(p + sizeof(*n), "GNU", 4) && n->n_descsz <= BUILD_ID_MOST) {
			memcpy(out, p + sizeof(*n) + name, n->n_descsz);
			return (uint16_t)n->n_descsz;
		}
		if (all > left)
			return 0;
		p += all;
		left -= all;
	}
	return 0;
}

static uint16_t build_id(const struct dl_phdr_info *info, uint8_t *out)
{
	uint16_t n = 0;

	for (int i = 0; i < info->dlpi_phnum && !n; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];

		if (p->p_type == PT_NOTE)
			n = id_in_notes((const uint8_t *)(info->dlpi_addr + p->p_vaddr), p->p_memsz,
					p->p_align == 8 ? 8 : 4, out);
	}
	return n;
}

/* The program itself has no name in the loader's list. */
static uint16_t path_of(const struct dl_phdr_info *info, char *out, size_t size)
{
	size_t n = strnlen(info->dlpi_name, size);
	ssize_t link;

	if (n) {
		memcpy(out, info->dlpi_name, n);
		return (uint16_t)n;
	}
	link = os_may(OS_FILES) ? readlink("/proc/self/exe", out, size) : -1;
	return link > 0 ? (uint16_t)link : 0;
}

static void define(struct scan *s, const struct dl_phdr_info *info, struct cfi_table r)
{
	struct {
		struct gmt_def_module head;
		uint8_t rest[BUILD_ID_MOST + PATH_MAX];
	} payload;
	struct gmt_def d = { .kind = GMT_DEF_MODULE, .payload = &payload };
	struct intern_entry *claimed;
	uint64_t what;

	payload.head = (struct gmt_def_module){
		.start = r.start,
		.end = r.end,
		.bias = info->dlpi_addr,
	};
	payload.head.build_id_len = build_id(info, payload.rest);
	payload.head.path_len =
		path_of(info, (char *)payload.rest + payload.head.build_id_len, PATH_MAX);
	if (memmem(payload.rest, payload.head.build_id_len + (size_t)payload.head.path_len,
		   "libpython3", 10))
		__atomic_store_n(&saw_python, true, __ATOMIC_RELAXED);
	d.len = (uint32_t)sizeof(payload.head) + payload.head.build_id_len + payload.head.path_len;
	what = intern_hash_bytes(&payload, d.len);
	if (intern_find(&defined, what, r.start, what, intern_same_words, &claimed))
		return;
	payload.head.seq = __atomic_load_n(&gmt_session.seq, __ATOMIC_SEQ_CST) + 1;
	d.id = intern_new_id(&defined);
	intern_publish(claimed, r.start, what, s->emit(&d) ? d.id : INTERN_DEAD);
}

static int count_one(struct dl_phdr_info *info, size_t size, void *ctx)
{
	struct scan *s = ctx;

	(void)size;
	s->adds = info->dlpi_adds;
	s->subs = info->dlpi_subs;
	s->seen++;
	return 0;
}

static int counters_only(struct dl_phdr_info *info, size_t size, void *ctx)
{
	count_one(info, size, ctx);
	return 1;
}

static int take_one(struct dl_phdr_info *info, size_t size, void *ctx)
{
	struct scan *s = ctx;
	struct cfi_table r = range_of(info);

	(void)size;
	s->map->adds = info->dlpi_adds;
	s->map->subs = info->dlpi_subs;
	if (r.start >= r.end)
		return 0;
	define(s, info, r);
	insert(s->map, r);
	return 0;
}

/* Notes the loader's count of unloads. True: there were some since the last call, by any thread. */
static bool note_unloads(unsigned long long subs)
{
	if (__atomic_exchange_n(&last_subs, subs, __ATOMIC_SEQ_CST) == subs)
		return false;
	__atomic_add_fetch(&unloads, ONE_MORE, __ATOMIC_SEQ_CST);
	return true;
}

static bool unchanged(const struct module_map *m)
{
	struct scan s = { 0 };

	dl_iterate_phdr(counters_only, &s);
	note_unloads(s.subs);
	return m && m->adds == s.adds && m->subs == s.subs;
}

static void scan_all(bool (*emit)(const struct gmt_def *d))
{
	struct module_map *seen = __atomic_load_n(&current, __ATOMIC_ACQUIRE);
	struct scan s = { .emit = emit };
	size_t bytes;

	dl_iterate_phdr(count_one, &s);
	s.seen += 16;
	bytes = sizeof(*s.map) + s.seen * sizeof(struct cfi_table);
	s.map = os_map(bytes);
	if (!s.map)
		return;
	s.map->room = s.seen;
	dl_iterate_phdr(take_one, &s);
	if (!__atomic_compare_exchange_n(&current, &seen, s.map, false, __ATOMIC_ACQ_REL,
					 __ATOMIC_RELAXED))
		os_unmap(s.map,
			 bytes); /* another thread was quicker; the next scan sees the rest */
}

static bool push_here(const struct gmt_def *d)
{
	return thread_push_def(thread_self(), d);
}

void modules_know(uintptr_t ip)
{
	const struct module_map *m = __atomic_load_n(&current, __ATOMIC_ACQUIRE);

	if (OS_LIKELY(module_table_of(m, ip) != NULL) || unchanged(m))
		return;
	scan_all(push_here);
}

const struct cfi_table *modules_table(uintptr_t ip)
{
	for (int tries = 0; tries < 4; tries++) {
		const struct module_map *m = __atomic_load_n(&current, __ATOMIC_ACQUIRE);

		if (unchanged(m))
			return module_table_of(m, ip);
		scan_all(push_here);
	}
	return NULL;
}

uint64_t modules_unloads(bool *now)
{
	uint64_t n = __atomic_load_n(&unloads, __ATOMIC_ACQUIRE);

	*now = n % ONE_MORE != 0;
	return n / ONE_MORE;
}

void modules_unload_begins(void)
{
	__atomic_add_fetch(&unloads, 1, __ATOMIC_SEQ_CST);
}

void modules_unload_ends(void)
{
	struct scan s = { 0 };

	forkgate_objects(counters_only, &s);
	note_unloads(s.subs);
	__atomic_sub_fetch(&unloads, 1, __ATOMIC_SEQ_CST);
}

void modules_update(bool (*emit)(const struct gmt_def *d))
{
	sigset_t mask;

	forkgate_enter(&mask);
	if (!unchanged(__atomic_load_n(&current, __ATOMIC_ACQUIRE)))
		scan_all(emit);
	forkgate_leave(&mask);
}

void modules_unload_reset(void)
{
	unloads = (unloads / ONE_MORE + 1) * ONE_MORE;
}

bool modules_have_python(void)
{
	return __atomic_load_n(&saw_python, __ATOMIC_RELAXED);
}

void modules_forget(void)
{
	memset(&defined, 0, sizeof(defined));
	current = NULL;
}

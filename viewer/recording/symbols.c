/* SPDX-License-Identifier: Apache-2.0 */
#include "symbols.h"

#include <dlfcn.h>

/* The C++ library's demangler, loaded for the first C++ name. Without it names stay mangled. */

typedef char *demangler(const char *name, char *buf, size_t *len, int *status);

static demangler *find_demangler(void)
{
	static demangler *found;
	static bool tried;
	void *library;

	if (!tried) {
		tried = true;
		library = dlopen("libstdc++.so.6", RTLD_LAZY | RTLD_LOCAL);
		found = library ? (demangler *)dlsym(library, "__cxa_demangle") : NULL;
	}
	return found;
}

/* Some demanglers put a space between two closing brackets, as C++98 needed it. */
char *demangle(const char *name)
{
	int status;
	char *text = strncmp(name, "_Z", 2) || !find_demangler()
			     ? NULL
			     : find_demangler()(name, NULL, NULL, &status),
	     *to = text;

	for (const char *p = text; text && (*to = *p); p++)
		if (!(p > text && p[-1] == '>' && p[0] == ' ' && p[1] == '>'))
			to++;
	return text;
}

/* Bytes of "operator" and its sign, which can look like brackets; 0 if it is not an operator. */
static size_t operator_sign(const char *p)
{
	return strncmp(p, "operator", 8) ? 0 : 8 + (p[8] == '(' ? 2 : strspn(p + 8, "<>=-!+*/[]"));
}

const char *demangle_brief(const char *name, char *buf, size_t room)
{
	static const char nameless[] = "(anonymous namespace)";
	size_t len = 0, depth = 0, n;

	for (const char *p = name; *p && len + sizeof(nameless) + 16 < room; p += n) {
		n = !strncmp(p, nameless, sizeof(nameless) - 1) ? sizeof(nameless) - 1
								: operator_sign(p);
		if (!n && *p == '(' && !depth)
			break;
		depth -= !n && *p == '>' && depth;
		n = n ? n : 1;
		if (!depth) {
			memcpy(buf + len, p, n);
			len += n;
		}
		if (n == 1 && *p == '<')
			depth++;
	}
	buf[len] = 0;
	return len ? buf : name;
}

/* A recorded object, and its file once it was needed. */
struct object {
	const struct defs_module *module;
	struct elf_names *names;
	bool tried;
};

struct known {
	struct symbol symbol; /* first, so that a pointer to one is a pointer to the other */
	struct object *object;
	bool placed;
};

struct symbols {
	const struct defs *defs;
	struct object *objects;
	size_t count;
	const struct defs_symbol *recorded;
	struct map recorded_ids; /* address -> index in recorded */
	struct map known;	 /* ip and object -> index in found */
	struct known **found;
	size_t found_count, found_room;
};

struct symbols *symbols_new(const struct defs *defs)
{
	struct symbols *s = need_new(sizeof(*s));
	const struct defs_module *m = defs->modules.items;

	s->defs = defs;
	s->count = defs->modules.count;
	s->objects = need_new(s->count * sizeof(*s->objects));
	for (size_t i = 0; i < s->count; i++)
		s->objects[i].module = &m[i];
	s->recorded = defs->symbols.items;
	for (size_t i = 0; i < defs->symbols.count; i++)
		*map_put(&s->recorded_ids, s->recorded[i].address, NULL) = (uint32_t)i;
	return s;
}

void symbols_free(struct symbols *s)
{
	for (size_t i = 0; i < s->count; i++)
		elf_names_close(s->objects[i].names);
	for (size_t i = 0; i < s->found_count; i++) {
		struct symbol *sym = &s->found[i]->symbol;

		if (sym->function != sym->raw)
			free((char *)sym->function);
		if (*sym->raw)
			free((char *)sym->raw);
		if (*sym->file)
			free((char *)sym->file);
		free(s->found[i]);
	}
	free(s->found);
	free(s->objects);
	map_free(&s->known);
	map_free(&s->recorded_ids);
	free(s);
}

/* The object at an address when event seq happened: the latest one mapped there until then, or else
 * the earliest one after it. */
static struct object *object_at(const struct symbols *s, uint64_t ip, uint64_t seq)
{
	struct object *best = NULL;

	FOR_EACH (struct object, o, s->objects, s->count) {
		if (ip < o->module->start || ip >= o->module->end)
			continue;
		if (!best ||
		    (o->module->seq <= seq &&
		     (best->module->seq > seq || o->module->seq >= best->module->seq)) ||
		    (o->module->seq > seq && best->module->seq > o->module->seq))
			best = o;
	}
	return best;
}

const struct defs_module *symbols_module(const struct symbols *s, uint64_t ip, uint64_t seq)
{
	const struct object *o = object_at(s, ip - 1, seq);

	return o ? o->module : NULL;
}

/* Removes the version that a library's own symbol table appends to a name
 * ("fopen@@GLIBC_2.2.5"). */
static const char *plain_name(const char *raw)
{
	size_t len = raw ? strcspn(raw, "@") : 0;

	return len ? need_copy(raw, len) : "";
}

/* Exported names were written at the program's end, so they belong to the object mapped last. */
static const char *exported(const struct symbols *s, const struct object *o, uint64_t ip)
{
	return o == object_at(s, ip - 1, UINT64_MAX) ? defs_function(s->defs, ip).s : "";
}

/* Uses the object's file if it is still there, because it has more names than it exports. */
static void name(const struct symbols *s, struct object *o, struct symbol *out, uint64_t ip)
{
	const struct defs_module *m = o->module;
	const char *raw = NULL;

	out->module = m->path.s;
	out->offset = ip - 1 - m->bias;
	if (!o->tried) {
		o->tried = true;
		o->names = elf_names_open(m->path.s, m->build_id.s, m->build_id.len);
	}
	if (o->names)
		raw = elf_names_function(o->names, out->offset);
	out->raw = plain_name(raw ? raw : exported(s, o, ip));
	out->function = demangle(out->raw);
	if (!out->function)
		out->function = out->raw;
}

/* Reads the line separately, because debug information is slow to open and most callers need only
 * the name. */
const struct symbol *symbols_place(const struct symbol *symbol)
{
	struct known *k = (struct known *)symbol;
	const char *file = NULL;

	if (!k->placed && k->object && k->object->names)
		file = elf_names_line(k->object->names, symbol->offset, &k->symbol.line);
	if (file && *file)
		k->symbol.file = need_text(file);
	k->placed = true;
	return symbol;
}

/* The name stored in the recording; false if there is none for that address. */
static bool name_recorded(const struct symbols *s, struct symbol *out, uint64_t ip)
{
	const uint32_t *at = map_get(&s->recorded_ids, ip);
	const struct defs_symbol *recorded = at ? &s->recorded[*at] : NULL;

	if (!recorded)
		return false;
	if (recorded->name.len)
		out->raw = out->function = need_copy(recorded->name.s, recorded->name.len);
	if (recorded->file.len)
		out->file = need_copy(recorded->file.s, recorded->file.len);
	out->line = recorded->line;
	return true;
}

const struct symbol *symbols_find(struct symbols *s, uint64_t ip, uint64_t seq)
{
	struct object *o = object_at(s, ip - 1, seq);
	uint64_t key = ip ^ (o ? (uint64_t)(o - s->objects + 1) << 48 : 0);
	struct known *k;
	uint32_t at = map_number(&s->known, key, s->found_count);

	if (at < s->found_count)
		return &s->found[at]->symbol;
	k = need_new(sizeof(*k));
	k->symbol.function = k->symbol.raw = k->symbol.module = k->symbol.file = "";
	if (!name_recorded(s, &k->symbol, ip)) {
		k->object = o;
		if (o)
			name(s, o, &k->symbol, ip);
	}
	*need_item(s->found, s->found_count, s->found_room) = k;
	return &k->symbol;
}

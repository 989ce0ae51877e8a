/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of everything, made from records.def and errors.def. Read-only tables; any thread.
 */
#include <stdlib.h>

#include "record.h"

struct kind_info {
	const char *name, *meaning;
	unsigned layer, fields;
};

static const struct kind_info kinds[] = {
#define EVENT(id, number, layer, text, fields, meaning) \
	[number] = { text, meaning, GMT_LAYER_##layer, fields },
#include "records.def"
};

static const char *const def_names[] = {
#define DEF(id, number, text, meaning) [number] = text,
#include "records.def"
};

static const char *const mem_names[] = {
	[GMT_MEM_DEVICE] = "device",
	[GMT_MEM_PITCHED] = "pitched",
	[GMT_MEM_MANAGED] = "managed",
	[GMT_MEM_HOST] = "pinned host",
	[GMT_MEM_REGISTERED] = "registered host",
	[GMT_MEM_ASYNC] = "stream-ordered",
	[GMT_MEM_ARRAY] = "array",
	[GMT_MEM_PHYSICAL] = "physical",
	[GMT_MEM_IMPORTED] = "imported",
};

static const struct {
	int number;
	const char *text;
} errors[] = {
#define ERR(id, number, text) { number, text },
#include "errors.def"
#undef ERR
};

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static const struct kind_info *find_kind(unsigned kind)
{
	return kind < COUNT(kinds) && kinds[kind].name ? &kinds[kind] : NULL;
}

bool gmt_kind_is_known(unsigned kind)
{
	return find_kind(kind);
}

bool gmt_def_is_known(unsigned kind)
{
	return kind < COUNT(def_names) && def_names[kind];
}

const char *gmt_kind_name(unsigned kind)
{
	const struct kind_info *k = find_kind(kind);

	return k ? k->name : "?";
}

unsigned gmt_kind_fields(unsigned kind)
{
	const struct kind_info *k = find_kind(kind);

	return k ? k->fields : 0;
}

unsigned gmt_kind_layer(unsigned kind)
{
	const struct kind_info *k = find_kind(kind);

	return k ? k->layer : 0;
}

const char *gmt_kind_meaning(unsigned kind)
{
	const struct kind_info *k = find_kind(kind);

	return k ? k->meaning : "?";
}

const char *gmt_def_name(unsigned kind)
{
	return gmt_def_is_known(kind) ? def_names[kind] : "?";
}

bool gmt_kind_has_memory(unsigned kind)
{
	return (kind >= GMT_MEM_ALLOC && kind <= GMT_MEM_FAIL) || kind == GMT_PHYS_CREATE;
}

const char *gmt_mem_name(unsigned mem)
{
	return mem < COUNT(mem_names) && mem_names[mem] ? mem_names[mem] : "?";
}

const char *gmt_strerror(int err)
{
	for (size_t i = 0; i < COUNT(errors); i++)
		if (errors[i].number == err || errors[i].number == -err)
			return errors[i].text;
	return "unknown error";
}

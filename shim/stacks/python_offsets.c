/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chooses the layout of the interpreter in this process. Runs before any frame is read; reads only
 * the interpreter's exported data.
 */
#include "python_offsets.h"

#include "../base/file.h"
#include "../base/os.h"

#include <string.h>

#define WORDS_MOST 96

static const struct python_offsets verified[] = {
#define PYTHON(...) { __VA_ARGS__, .frame_tlbc = -1, .code_tlbc = -1, .kind_shift = 2 },
#include "python_offsets.def"
};

/* The interpreter's own table is an array of words. Index of each fact's word, by minor version. */
struct own_table {
	int minor, words;
	int current_frame, thread_id;
	int previous, executable, instr_ptr, variables, owner, tlbc_index;
	int filename, name, qualname, linetable, first_line, names, code_start, tlbc;
	int object_type, bytes_size, bytes_data, state, length, ascii_size;
	uint16_t tag_mask;
};

static const struct own_table own_tables[] = {
	{ 13, 71, 23, 24, 29, 30, 31, 32, 33, -1, 35, 36, 37,
	  38, 39, 41, 43, -1, 45, 65, 66, 68, 69, 70, 0 },
	{ 14, 81, 26, 27, 32, 33, 34, 35, 36, 38, 40, 41, 42,
	  43, 44, 46, 48, 49, 51, 75, 76, 78, 79, 80, 3 },
};

static bool fits(uint64_t offset)
{
	return offset < 4096;
}

/* Relations that hold in both tables and every build so far; a table that is misread fails. */
static bool makes_sense(const struct python_offsets *o)
{
	return o->object_type >= 8 && o->str_length == o->object_type + 8 &&
	       o->bytes_size == o->str_length && o->bytes_data == o->bytes_size + 16 &&
	       o->str_state == o->str_length + 16 &&
	       (o->str_ascii == o->str_state + 8 || o->str_ascii == o->str_state + 16) &&
	       o->code_name > o->code_file && o->frame_lasti > o->frame_back;
}

static void read_own_table(struct python_offsets *o, const struct own_table *at, const uint64_t *w)
{
	bool free_threaded = w[2] != 0;
	int head = (int)w[at->object_type] + 8 - 16; /* extra bytes of an object's head */

	*o = (struct python_offsets){
		.minor = (int16_t)at->minor,
		.lasti_kind = PYTHON_LASTI_POINTER,
		.thread_frame = (int16_t)w[at->current_frame],
		.cframe_frame = -1,
		.thread_id = (int16_t)w[at->thread_id],
		.frame_code = (int16_t)w[at->executable],
		.frame_back = (int16_t)w[at->previous],
		.frame_lasti = (int16_t)w[at->instr_ptr],
		.frame_owner = (int16_t)w[at->owner],
		.frame_entry = -1,
		.code_first_line = (int16_t)w[at->first_line],
		.code_file = (int16_t)w[at->filename],
		.code_name = (int16_t)w[at->name],
		.code_qualname = (int16_t)w[at->qualname],
		.code_table = (int16_t)w[at->linetable],
		.code_version = (int16_t)(92 + head),
		.code_start = (int16_t)w[at->code_start],
		.object_type = (int16_t)w[at->object_type],
		.str_length = (int16_t)w[at->length],
		.str_hash = (int16_t)(w[at->length] + 8),
		.str_state = (int16_t)w[at->state],
		.str_ascii = (int16_t)w[at->ascii_size],
		.str_compact = (int16_t)(w[at->ascii_size] + 16),
		.bytes_size = (int16_t)w[at->bytes_size],
		.bytes_data = (int16_t)w[at->bytes_data],
		.shim_owner = 3,
		.frame_variables = (int16_t)w[at->variables],
		.frame_globals = 24,
		.code_variables = (int16_t)w[at->names],
		.type_keys = at->minor == 13 ? 880 : -1,
		.frame_tlbc = -1,
		.code_tlbc = -1,
		.tag_mask = at->tag_mask,
		.kind_shift = 2,
	};
	if (free_threaded && at->tlbc >= 0) {
		o->frame_tlbc = (int16_t)w[at->tlbc_index];
		o->code_tlbc = (int16_t)w[at->tlbc];
	}
}

static bool from_own_table(struct python_offsets *o, int minor, const void *runtime)
{
	uint64_t w[WORDS_MOST];

	for (unsigned i = 0; i < sizeof(own_tables) / sizeof(own_tables[0]); i++) {
		const struct own_table *at = &own_tables[i];

		if (at->minor != minor ||
		    !file_peek(w, (uintptr_t)runtime, (size_t)at->words * 8) ||
		    memcmp(w, "xdebugpy", 8) || w[1] >> 16 != (0x0300u | (unsigned)minor))
			continue;
		/* The words before these are offsets in the interpreter's larger state. */
		for (int j = at->current_frame; j < at->words; j++)
			if (!fits(w[j]))
				return false;
		read_own_table(o, at, w);
		return makes_sense(o);
	}
	return false;
}

bool python_offsets_for(struct python_offsets *out, int minor, const void *runtime)
{
	if (runtime && minor >= 13)
		return from_own_table(out, minor, runtime);
	for (unsigned i = 0; i < sizeof(verified) / sizeof(verified[0]); i++) {
		if (verified[i].minor == minor) {
			*out = verified[i];
			return makes_sense(out);
		}
	}
	return false;
}

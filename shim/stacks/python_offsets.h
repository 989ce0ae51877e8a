/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Offsets of the interpreter's data that we read: a table for released versions
 * (python_offsets.def), and the interpreter's own table from 3.13 on.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum python_lasti {
	PYTHON_LASTI_BYTES = 1, /* int, bytes */
	PYTHON_LASTI_UNITS = 2, /* int, code units of two bytes */
	PYTHON_LASTI_POINTER = 3,
};

/* Bytes from the start of the struct; -1 = this version has no such field. */
struct python_offsets {
	int16_t minor;
	int16_t lasti_kind;   /* enum python_lasti */
	int16_t thread_frame; /* current frame, or the cframe that has it */
	int16_t cframe_frame; /* in the cframe */
	int16_t thread_id;    /* pthread_self */
	int16_t frame_code, frame_back, frame_lasti, frame_owner, frame_entry;
	int16_t code_first_line, code_file, code_name, code_qualname, code_table, code_version;
	int16_t code_start; /* first instruction */
	int16_t object_type;
	int16_t str_length, str_hash, str_state, str_ascii, str_compact;
	int16_t bytes_size, bytes_data;
	int16_t shim_owner; /* frame owners from this one on are not Python code */
	/* the variables' values; the dict of a module's; the tuple of their names */
	int16_t frame_variables, frame_globals, code_variables;
	int16_t type_keys; /* keys of its objects' attributes; -1 = not verified */
	/* free threading: each thread has its own copy of the instructions */
	int16_t frame_tlbc, code_tlbc;
	uint16_t tag_mask;   /* bits of a code reference that are not address */
	uint16_t kind_shift; /* position of the kind bits in a str's state */
};

/*
 * Offsets for version major.minor, from the interpreter's own table at `runtime` if it has one
 * (NULL: it has none). false = a version that is not verified, or a table that makes no sense.
 */
bool python_offsets_for(struct python_offsets *out, int minor, const void *runtime);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The vocabulary of events and definitions (event.h): their kinds, fields and flags, with names. No
 * state, no allocation; every function may be called from any thread.
 */
#pragma once

#include "event.h"

enum gmt_kind {
#define EVENT(name, number, layer, text, fields, meaning) GMT_##name = number,
#include "records.def"
};

enum gmt_def_kind {
#define DEF(name, number, text, meaning) GMT_DEF_##name = number,
#include "records.def"
};

enum gmt_layer {
	GMT_LAYER_FRAMEWORK = 1,
	GMT_LAYER_CUDA,
	GMT_LAYER_TAG,
	GMT_LAYER_RANGE,
	GMT_LAYER_SAMPLE,
	GMT_LAYER_INTERNAL,
	GMT_LAYER_USE,
};

/* Members of struct gmt_event that a kind carries; the codec writes them in this order. */
enum gmt_field {
	F_ADDR = 1 << 0,
	F_SIZE = 1 << 1,
	F_ARG0 = 1 << 2,
	F_ARG1 = 1 << 3,
	F_STREAM = 1 << 4,
	F_NAME = 1 << 5,
	F_SCOPE = 1 << 6,
	F_DEVICE = 1 << 7,
	F_STACK = 1 << 8,
	F_ALL = (1 << 9) - 1,
};

enum gmt_flag {
	GMT_FLAG_NESTED = 1 << 0, /* an inner layer's call was seen inside this one */
	GMT_FLAG_FRAMEWORK =
		1 << 1,		 /* called by the framework's allocator (a segment of its cache) */
	GMT_FLAG_CUPTI = 1 << 2, /* recorded by CUPTI, not by a hook */
	GMT_FLAG_CAPTURING = 1 << 3, /* inside a CUDA graph capture */
	GMT_FLAG_TRUNCATED = 1 << 4, /* the stack was deeper than what is kept */
	GMT_FLAG_NO_PYTHON = 1 << 5, /* the thread has no Python state */
	GMT_FLAG_LATE = 1 << 6,	     /* first seen after its allocation: its true age is unknown */
	GMT_FLAG_NO_TENSOR = 1 << 7, /* a block of no new tensor: its requested size is unknown */
	GMT_FLAG_OWN_POOL = 1 << 8,  /* use_mem_pool: a graph_begin or graph_end without capture */
	GMT_FLAG_MORE = 1 << 9,	     /* more places of the launch or graph of the event before */
};

/* Kind of memory in a MEM_* or PHYS_* event (arg0). */
enum gmt_mem {
	GMT_MEM_DEVICE = 1,	/* cudaMalloc, cuMemAlloc */
	GMT_MEM_PITCHED = 2,	/* cudaMallocPitch, cudaMalloc3D: size = pitch x rows */
	GMT_MEM_MANAGED = 3,	/* cudaMallocManaged */
	GMT_MEM_HOST = 4,	/* pinned host memory: cudaHostAlloc, cudaMallocHost */
	GMT_MEM_REGISTERED = 5, /* host memory pinned afterwards: cudaHostRegister */
	GMT_MEM_ASYNC = 6,	/* cudaMallocAsync, cudaMallocFromPoolAsync */
	GMT_MEM_ARRAY = 7,	/* CUDA arrays */
	GMT_MEM_PHYSICAL = 8,	/* cuMemCreate on a device */
	GMT_MEM_IMPORTED = 9,	/* another process's memory opened here: addresses only */
};

/* How a tensor was saved for backward (arg1 of TAG_SAVED), bits. */
enum gmt_saved {
	GMT_SAVED_OUTPUT = 1 << 0, /* it is the node's own output */
	GMT_SAVED_PLAIN = 1 << 1,  /* no differentiable operation made it: an input, a weight */
	GMT_SAVED_PACKED = 1 << 2, /* a hook packed it and might keep something else; arg0 is 0 */
};

/* Role of an object of the program that holds memory (arg1 of TAG_HELD). */
enum gmt_held {
	GMT_HELD_PARAMETER = 1, /* of a module, or that an optimizer updates */
	GMT_HELD_GRADIENT = 2,	/* a parameter's grad */
	GMT_HELD_STATE = 3,	/* of an optimizer */
	GMT_HELD_BUFFER = 4,	/* of a module */
	GMT_HELD_CACHE = 5,	/* keys and values of attention */
};

/* How work other than kernels touches a range of memory (arg0 of TRANSFER). */
enum gmt_transfer {
	GMT_TRANSFER_SOURCE = 1,   /* a copy reads it */
	GMT_TRANSFER_TARGET = 2,   /* a copy writes it */
	GMT_TRANSFER_SET = 3,	   /* it is filled with a value */
	GMT_TRANSFER_PREFETCH = 4, /* managed memory moves, its contents stay */
	GMT_TRANSFER_SENT = 5,	   /* a collective or a send reads it */
	GMT_TRANSFER_RECEIVED = 6, /* a collective or a receive writes it */
};

enum gmt_range {
	GMT_RANGE_FRAMEWORK = 1, /* record_function and everything that uses it */
	GMT_RANGE_NVTX = 2,
	GMT_RANGE_PROGRAM = 3, /* the program itself: gpumemtrace.mark in Python */
};

/* Kind of a node of the stack tree, which gives its value a meaning (DEF STACK). */
enum gmt_frame {
	GMT_FRAME_NATIVE = 1, /* value = return address: the call is one byte before it */
	GMT_FRAME_PYTHON = 2, /* value = code id << 32 | lasti in bytes << 1 | entry */
	GMT_FRAME_JOIN =
		3, /* value = node of the Python chain; parent = node of the native chain */
};

/* Numbers of kinds of events, of definitions and of blocks decide how a reader treats an unknown
 * kind: it skips kinds from GMT_KIND_EXTRA up to GMT_KIND_REQUIRED, and rejects the recording for
 * any other. FORMAT.md, section 9, gives the number for a new kind. */
#define GMT_KIND_EXTRA	  64u
#define GMT_KIND_REQUIRED 128u

static inline bool gmt_kind_is_extra(unsigned kind)
{
	return kind >= GMT_KIND_EXTRA && kind < GMT_KIND_REQUIRED;
}

enum gmt_err {
#define ERR(name, number, text) GMT_ERR_##name = number,
#include "errors.def"
#undef ERR
};

/* Payloads of definitions, all little-endian, no padding; strings follow without terminator. */
struct gmt_def_thread {
	uint32_t tid;
	uint32_t name_len; /* name follows */
} __attribute__((packed));

struct gmt_def_module {
	uint64_t start, end; /* addresses of the mapped object, end exclusive */
	uint64_t bias;	     /* address in memory minus address in the file's ELF headers */
	uint64_t seq;	     /* events from this one on may have frames in it */
	uint16_t build_id_len;
	uint16_t path_len; /* build-id bytes, then path bytes follow */
} __attribute__((packed));

struct gmt_def_code {
	uint32_t first_line;
	uint16_t python;   /* major << 8 | minor: says how to read the line table */
	uint16_t flags;	   /* 1 = line table cut off */
	uint32_t file_len; /* file name, qualified name, line table follow */
	uint32_t name_len;
	uint32_t table_len;
} __attribute__((packed));

struct gmt_def_stack {
	uint64_t value;
	uint32_t parent;
	uint32_t frame; /* enum gmt_frame */
} __attribute__((packed));

struct gmt_def_symbol {
	uint64_t address; /* as in the value of a native frame */
	uint32_t line;	  /* 0 = unknown */
	uint32_t file_len;
	uint32_t name_len; /* file name, function's name follow */
} __attribute__((packed));

struct gmt_def_function {
	uint64_t address; /* as in the value of a native frame; the name, mangled, follows */
} __attribute__((packed));

/* Variables of the Python frame in which that stack node ends; `count` variables follow. */
struct gmt_def_variables {
	uint64_t seq; /* the latest event before */
	uint32_t node;
	uint16_t count;
	uint16_t flags; /* 1: when a request failed; 0: when the node first asked for much */
} __attribute__((packed));

#define GMT_VARIABLE_DIMS 8 /* a tensor with more is left out */

/* A tensor, or a list, tuple or dict with tensors: then all but bytes is of the first one. */
struct gmt_variable {
	uint64_t addr; /* of its first element */
	uint64_t
		bytes; /* of its storage, which other tensors may share; or of all their storages */
	uint32_t tensors; /* number in the container, nested ones included; 0 = it is a tensor */
	uint8_t type;	  /* c10::ScalarType */
	uint8_t dims;	  /* number of sizes that follow, eight bytes each; then the name */
	uint8_t name_len; /* a name with a dot: an attribute of an object */
	uint8_t reserved; /* 0 */
} __attribute__((packed));

enum gmt_source_flag {
	GMT_SOURCE_CUT = 1 << 0,     /* the statement is longer than its text */
	GMT_SOURCE_CHANGED = 1 << 1, /* the file is newer than the process: no text */
};

struct gmt_def_source {
	uint32_t line;	   /* from 1 */
	uint32_t flags;	   /* enum gmt_source_flag */
	uint32_t file_len; /* file name as in the code object, then the text (the rest) follow */
} __attribute__((packed));

struct gmt_def_meta {
	uint16_t key_len; /* key, then value (the rest) follow */
} __attribute__((packed));

const char *gmt_kind_name(unsigned kind); /* "block_alloc"; "?" if unknown */
unsigned gmt_kind_fields(unsigned kind);  /* enum gmt_field; 0 if unknown */
unsigned gmt_kind_layer(unsigned kind);	  /* enum gmt_layer; 0 if unknown */
bool gmt_kind_is_known(unsigned kind);
bool gmt_def_is_known(unsigned kind);
bool gmt_kind_has_memory(unsigned kind);     /* arg0 is an enum gmt_mem */
const char *gmt_kind_meaning(unsigned kind); /* one line */
const char *gmt_def_name(unsigned kind);     /* "string"; "?" if unknown */
const char *gmt_mem_name(unsigned mem);	     /* "device", "pinned host", ... */
const char *gmt_strerror(int err);	     /* sentence of errors.def for err or -err */

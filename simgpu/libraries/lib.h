/* SPDX-License-Identifier: Apache-2.0
 *
 * For the files that define functions of the math and communication libraries. Only the calls whose
 * results a program can see are written by hand; the tables lib_*.def stub the rest.
 *
 * No library header is included, because these files must build with any toolkit, or with a bare
 * cuda_runtime_api.h. Handles, descriptors and enums are declared as what they are in the ABI
 * (pointers and ints). tests/e2e/test_simgpu_names.py compares names and argument counts with the
 * libraries and headers that are installed.
 */
#pragma once

#include "../core/sim.h"

#define API(type, name, ...)            \
	SIM_API type name(__VA_ARGS__); \
	SIM_API type name(__VA_ARGS__)

/* A function as one row: the type of its result, its name, its result, its arguments. */
#define API_CALL(type, name, result, ...) \
	API(type, name, __VA_ARGS__)      \
	{                                 \
		return result;            \
	}

/* The functions that make and free an object, with the codes for a NULL `out` and for no memory. */
#define API_OBJECT(make, unmake, kind, bytes, no_place, no_room)                         \
	API_CALL(int, make, lib_create(out, kind, bytes, no_place, no_room), void **out) \
	API(int, unmake, void *handle)                                                   \
	{                                                                                \
		sim_handle_free(sim_handle_check(handle, kind));                         \
		return 0;                                                                \
	}
int lib_create(void **out, uint32_t kind, size_t bytes, int no_place, int no_room);

/* Functions that set and get a field of an object, with the codes for a wrong object and NULL. */
#define API_SETTING(set, get, kind, object, type, field, no_object, no_place) \
	API(int, set, struct object *o, type value)                           \
	{                                                                     \
		if (!sim_handle_check(o, kind))                               \
			return no_object;                                     \
		o->field = value;                                             \
		return 0;                                                     \
	}                                                                     \
	API(int, get, struct object *o, type *value)                          \
	{                                                                     \
		if (!sim_handle_check(o, kind))                               \
			return no_object;                                     \
		if (!value)                                                   \
			return no_place;                                      \
		*value = o->field;                                            \
		return 0;                                                     \
	}

#define MIB ((size_t)1 << 20)

/* A library's own device memory, allocated through the driver's public entry point because the real
 * library uses its own copy of the runtime. A profiler that hooks the driver therefore sees it.
 * lib_memory.c */
void *lib_alloc(size_t bytes); /* NULL if the device is full */
void lib_free(void *ptr);
/* The same with the driver's mapping calls (cuMemCreate and so on), in whole 2 MiB pages. */
void *lib_map(size_t bytes);
void lib_unmap(void *ptr, size_t bytes);

/* SIMGPU_CARD's compute capability as 80, 86, 89, 90, 100. */
int lib_capability(void);
/* cuBLAS's default workspace, as NVIDIA documents it; lib_cublas.c */
size_t lib_blas_workspace(void);
size_t lib_type_bytes(int cuda_type); /* cudaDataType_t; 4 if unknown */

/* Version of a library, by its short name ("cublas", "cudnn", "nccl"...): part 0, 1, 2 is major,
 * minor, patch. It is the version of the real library if the program has loaded that as well, else
 * a common one. lib_versions.c */
int lib_version(const char *library, int part);
/* A library's version as one number: major * scale + minor * 100 + patch. */
int lib_version_number(const char *library, int scale);
/* Functions that write a part of a version, or all of it, and the code for wrong arguments. */
#define API_PROPERTY(name, library, invalid)       \
	API(int, name, int part, int *out)         \
	{                                          \
		if (!out || part < 0 || part > 2)  \
			return invalid;            \
		*out = lib_version(library, part); \
		return 0;                          \
	}
#define API_VERSION(name, library, scale, invalid, ...)    \
	API(int, name, __VA_ARGS__)                        \
	{                                                  \
		if (!out)                                  \
			return invalid;                    \
		*out = lib_version_number(library, scale); \
		return 0;                                  \
	}

/* Handles that carry a stream, which is their first member. */
#define LIB_BLAS   SIM_KIND('b', 'l', 'a', 's')
#define LIB_DNN	   SIM_KIND('d', 'n', 'n', 'h')
#define LIB_SOLVER SIM_KIND('s', 'o', 'l', 'v')
#define LIB_SPARSE SIM_KIND('s', 'p', 'a', 'r')
#define LIB_RAND   SIM_KIND('r', 'a', 'n', 'd')

/* The memory that the kernels of a call use, for tools between the libraries and the driver. From
 * lib_uses() to lib_used() each kernel is launched with the addresses that were added until then.
 * lib_stream.c */
void lib_uses(const char *function);
void lib_use(const void *address);		     /* if it lies on the device */
void lib_use_array(const void *array, double count); /* the known addresses in it */
void lib_used(void);
/* Add the memory that an argument refers to. */
void lib_use_blas(void *handle);
void lib_use_sparse(void *object);
void lib_use_generator(void *handle);
void *lib_use_plan(int handle); /* returns the plan's stream */

/* Launches a library's kernel on a stream. */
void lib_launch(void *stream);
/* The same with a known cost: arithmetic operations and bytes of device memory, or the bytes that a
 * collective moves in all. lib_work(): a function's name and its arguments' words, handle first. */
void lib_product(void *stream, double operations, int cuda_type, double bytes);
void lib_collective(const char *kernel, void *stream, double bytes, int ranks);
void lib_work(const char *name, const uintptr_t *words, int n);

static inline int lib_round_int(size_t bytes)
{
	return bytes > 0x7fffffff ? 0x7fffffff : (int)bytes;
}

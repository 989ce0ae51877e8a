/* SPDX-License-Identifier: Apache-2.0
 *
 * For the files that define functions of the math and communication libraries. Only the calls whose
 * answers a program can see are written by hand; the tables lib_*.def stub the rest.
 *
 * No library header is included: what is here must build with any toolkit, or with a bare
 * cuda_runtime_api.h. Handles, descriptors and enums are declared by what the ABI makes of them
 * (pointers and ints). tests/e2e/test_simgpu_names.py compares names and argument counts with the
 * libraries and headers that are installed.
 */
#pragma once

#include "../core/sim.h"

#define API(type, name, ...)            \
	SIM_API type name(__VA_ARGS__); \
	SIM_API type name(__VA_ARGS__)

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
size_t lib_type_bytes(int cuda_type); /* cudaDataType_t; 4 where unknown */

/* Version of a library, by its short name ("cublas", "cudnn", "nccl"...): part 0, 1, 2 is major,
 * minor, patch. It is the version of the real library if the program has loaded one behind us, else
 * a common one. lib_versions.c */
int lib_version(const char *library, int part);

/* Handles that carry a stream, which is their first member. */
#define LIB_BLAS   SIM_KIND('b', 'l', 'a', 's')
#define LIB_DNN	   SIM_KIND('d', 'n', 'n', 'h')
#define LIB_SOLVER SIM_KIND('s', 'o', 'l', 'v')
#define LIB_SPARSE SIM_KIND('s', 'p', 'a', 'r')

/* Launches a library's kernel on a stream. The second form also has a function's name and the words
 * of its arguments, the handle first. */
void lib_launch(void *stream);
/* The same with a known cost: arithmetic operations and bytes of device memory, or the bytes that a
 * collective moves in all. */
void lib_product(void *stream, double operations, int cuda_type, double bytes);
void lib_collective(void *stream, double bytes, int ranks);
void lib_work(const char *name, const uintptr_t *words, int n);

static inline int lib_round_int(size_t bytes)
{
	return bytes > 0x7fffffff ? 0x7fffffff : (int)bytes;
}

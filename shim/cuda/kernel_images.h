/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Layouts of kernels' parameters for drivers before CUDA 12.4, which do not report them. They are
 * read from the images that the program loads, at a kernel's first launch. With newer drivers this
 * costs nothing. Application threads, any lock held; no lock.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A kernel's section of an image, between image_find and image_close. */
struct image_kernel {
	const char *name;
	size_t name_size;
	const uint8_t *attributes;
	size_t bytes;
	void *memory; /* the image, which the pointers above point into */
	size_t memory_bytes;
};

/* True if the driver is too old to report layouts. */
bool images_are_needed(void);

/* `handle`: the module or library as which the driver loaded the code. */
void image_loaded(const void *handle, const void *code);
void image_loaded_file(const void *handle, const char *path);
void image_unloaded(const void *handle);

uint64_t image_hash(const char *name, size_t length);

/* False: no loaded code has all parameters of a kernel of this name. */
bool image_find(const void *handle, uint64_t name, struct image_kernel *k);
/* Offset and size of parameter i, in bytes. Returns 0; CUDA_INVALID_VALUE after the last one. */
int image_parameter(const struct image_kernel *k, size_t i, size_t *offset, size_t *size);
void image_close(struct image_kernel *k);

/* SPDX-License-Identifier: Apache-2.0
 *
 * Layouts of kernels' parameters, from compiled code: layout.c reads ELF images, fatbin.c the fat
 * binaries that contain them.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct parameter {
	uint16_t offset, size;
};

struct layout {
	uint64_t name;	   /* a hash of the kernel's name */
	uint32_t first, n; /* its parameters */
};

/* The layouts of all kernels of one or more images. */
struct layouts {
	struct layout *kernels;
	struct parameter *parameters;
	size_t n, room, n_parameters, parameters_room;
};

/* The input may be any bytes; unreadable parts add nothing. False: out of memory. */
bool layouts_read_elf(struct layouts *all, const void *image, size_t bytes);
const struct layout *layouts_find(const struct layouts *all, const char *name); /* or NULL */
void layouts_add(struct layouts *all, const char *name, const struct parameter *p, uint32_t n);
void layouts_done(struct layouts *all);

/* Reads an image in this process's memory: an ELF file, a fat binary, or the wrapper by which a
 * program registers one. Reading ends at memory that is not mapped. Images of a fat binary are read
 * in turn, those of the given architecture (90) first, until one has a kernel of that name (NULL:
 * any). */
void layouts_read(struct layouts *all, const void *image, unsigned int architecture,
		  const char *name);
/* False if it is a fat binary that has neither machine code for that architecture nor PTX that the
 * driver could compile for it. */
bool image_has_code(const void *image, unsigned int architecture);
/* Copies up to `bytes` bytes, as far as they are mapped, without a fault; returns their number. */
size_t memory_peek(void *to, const void *from, size_t bytes);

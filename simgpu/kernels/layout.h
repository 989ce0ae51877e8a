/* SPDX-License-Identifier: Apache-2.0
 *
 * Where each parameter of a kernel lies among its arguments, as compiled code says it: layout.c
 * reads ELF images, fatbin.c what they are packed in.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct parameter {
	uint16_t offset, size;
};

struct layout {
	uint64_t name; /* a hash of the kernel's name */
	uint32_t first, n;
};

/* Of all kernels of one or more images. */
struct layouts {
	struct layout *kernels;
	struct parameter *parameters;
	size_t n, room, n_parameters, parameters_room;
};

/* Any bytes may be given: what is not understood adds nothing. False: there is no memory. */
bool layouts_read_elf(struct layouts *all, const void *image, size_t bytes);
const struct layout *layouts_find(const struct layouts *all, const char *name); /* or NULL */
void layouts_add(struct layouts *all, const char *name, const struct parameter *p, uint32_t n);
void layouts_done(struct layouts *all);

/* Images in this process's memory, by their address: an ELF file, a fat binary, or what a program
 * registers a fat binary with. Memory that is not there ends the reading. Of a fat binary, images
 * are read one after the other, that of the given architecture (90) first, until one has a kernel
 * of that name; NULL: until one has any. */
void layouts_read(struct layouts *all, const void *image, unsigned int architecture,
		  const char *name);
/* False: a fat binary that has neither machine code for that architecture nor PTX that the driver
 * could compile for it. */
bool image_has_code(const void *image, unsigned int architecture);
/* Bytes that lie there, of so many; without a fault if it is fewer. */
size_t memory_peek(void *to, const void *from, size_t bytes);

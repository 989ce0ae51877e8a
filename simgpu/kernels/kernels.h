/* SPDX-License-Identifier: Apache-2.0
 *
 * Kernels by name. A program registers thousands in its constructors. Those of PyTorch that are in
 * the table of families.c are computed for small tensors; of others only the written addresses are
 * known.
 */
#pragma once

#include "../core/contents.h"
#include "../core/work.h"
#include "layout.h"
#include "text.h"

#define SMALL_MOST    4096	/* elements of a tensor that is computed */
#define WHOLE_MOST    (1 << 20) /* the same for whole numbers or flags, if some of them are known */
#define CHOICE_MOST   (1 << 19) /* choices among unknown values that are spread */
#define TYPES_MOST    4
#define OPERANDS_MOST 4 /* of an element-wise kernel, with the result */

struct call;
struct functor;
struct reducer;

/* A kind of kernels that are computed in the same way. */
struct family {
	const char *mark; /* occurs in the readable names of its kernels */
	/* Reads a kernel's name, at its first launch. False: it is some other kernel. */
	bool (*parse)(struct kernel *k);
	/* True: all that it writes was computed or forgotten. False: that is not known. */
	bool (*launch)(const struct call *c);
	bool large; /* an argument may have 32 KiB (from CUDA 12.1 on) instead of 4 */
};

struct kernel {
	const void *host;
	const char *name; /* as registered */
	char *text;	  /* demangled, or as registered if that is not C++; NULL: not seen yet */
	bool seen;
	bool spins;		       /* waits for a given number of cycles */
	const struct family *family;   /* NULL: none of the table */
	const struct functor *functor; /* of each element: elements.c */
	const struct reducer *reducer; /* of all elements: reduce.c */
	char types[TYPES_MOST];	       /* as its family defines; 0: not known */
	int form;		       /* as its family defines */
	int operands;		       /* number of operands or lists */
	int column;	     /* lists.c: extra bytes per tensor; other families: their own use */
	int result;	     /* lists.c: the list that is written, -1: any may be */
	struct image *image; /* its code; NULL: not known */
	bool asked;	     /* the image was searched for the parameters */
	int n_parameters;    /* -1: not known */
	struct parameter *parameters;
};

struct call {
	const struct kernel *k;
	void **args;
	unsigned int grid[3];
};

/* registry.c: a launch names a kernel by its host pointer. */
void kernel_register(const void *host, const char *name, struct image *image);
struct kernel *kernel_find(const void *host); /* NULL if unknown */

/* images.c: a registered image is read when it is first needed, a loaded one at once. */
struct image *image_register(const void *binary); /* NULL: out of memory */
struct image *image_load(const void *image);
void image_says(struct image *image, const char *name, const struct parameter *p, int n);
bool kernel_has_code(const struct kernel *k); /* that this card runs */
void image_gone(struct image *image);	      /* its code is unloaded; what was read stays */
/* Number of a kernel's parameters, and their layout; -1: not known. */
int kernel_parameters(struct kernel *k, const struct parameter **parameters);

/* library_kernels.c: launches a kernel of a library's function, with these addresses as parameters.
 * False: nothing was launched. */
#define LIBRARY_WORDS 1024
struct library_work {
	uint64_t ns;
	bool collective;
};
bool library_call(const char *function, const uintptr_t *words, int n, void *stream,
		  const struct library_work *what);
bool library_check(const void *fn); /* whether it is such a kernel */
void library_launch(void *stream);  /* the driver's part of such a launch */
void library_run(void *stream, const struct library_work *what); /* the work, without the driver */

/* families.c */
const struct family *family_find(const char *text);
/* A launch: true if its effect on known contents has been done here. */
bool kernel_launch(const void *host, const unsigned int grid[3], void **args);
/* recorded.c: a launch, and an action that performs it with a copy of the arguments (NULL: layout
 * not known). */
struct launch {
	const void *fn;
	unsigned int grid[3], block[3];
	size_t shared;
	void **args;
};
struct act *kernel_keep(const struct launch *l);
const struct launch *kernel_kept(const struct act *act); /* NULL: another action */
/* Records a launch into a graph, by the parameter types in the kernel's name. */
void kernel_record(const void *host, void *stream, const unsigned int grid[3], void **args);

/* Argument i as a whole number, and as an address: NULL if it is not on the device. */
int64_t call_number(const struct call *c, int i);
void *call_address(const struct call *c, int i);

/* Forgets everything that a kernel may have written, by its parameters' types; false if its name
 * does not show them. */
bool signature_forget(const struct call *c);
int signature_count(const struct kernel *k); /* number of its parameters; -1: not known */

/* The functions of each family. */
bool elements_parse(struct kernel *k);
bool elements_launch(const struct call *c);
bool reduce_parse(struct kernel *k);
bool reduce_launch(const struct call *c);
bool product_parse(struct kernel *k);
bool product_launch(const struct call *c);
bool index_parse(struct kernel *k);
bool index_launch(const struct call *c);
bool sort_parse(struct kernel *k);
bool radix_parse(struct kernel *k);
bool scan_parse(struct kernel *k);
bool prepare_launch(const struct call *c);
bool sort_launch(const struct call *c);
bool topk_launch(const struct call *c);
bool kth_launch(const struct call *c);
bool median_launch(const struct call *c);
bool radix_launch(const struct call *c);
bool radix_pass_launch(const struct call *c);
bool scan_outer_launch(const struct call *c);
bool scan_inner_launch(const struct call *c);
bool scan_outer_places_launch(const struct call *c);
bool scan_inner_places_launch(const struct call *c);
bool scan_row_launch(const struct call *c);
bool total_launch(const struct call *c);
bool parts_launch(const struct call *c);
bool select_launch(const struct call *c);
bool unlike_keys_launch(const struct call *c);
bool runs_launch(const struct call *c);
bool unlike_launch(const struct call *c);
bool scatter_each_launch(const struct call *c);
bool two_values_launch(const struct call *c);
bool two_places_launch(const struct call *c);
bool along_parse(struct kernel *k);
bool range_parse(struct kernel *k);
bool histogram_parse(struct kernel *k);
bool index_select_launch(const struct call *c);
bool index_func_launch(const struct call *c);
bool index_sum_launch(const struct call *c);
bool roll_launch(const struct call *c);
bool triangle_launch(const struct call *c);
bool repeat_launch(const struct call *c);
bool places_launch(const struct call *c);
bool gather_rows_launch(const struct call *c);
bool range_launch(const struct call *c);
bool histogram_launch(const struct call *c);
bool search_launch(const struct call *c);
bool softmax_launch(const struct call *c);
bool softmax_outer_launch(const struct call *c);
bool softmax_row_launch(const struct call *c);
bool random_parse(struct kernel *k);
bool random_launch(const struct call *c);
bool lists_parse(struct kernel *k);
bool lists_launch(const struct call *c);
bool cat_parse(struct kernel *k);
bool cat_launch(const struct call *c);
bool scaler_launch(const struct call *c);

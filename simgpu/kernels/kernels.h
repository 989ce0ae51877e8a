/* SPDX-License-Identifier: Apache-2.0
 *
 * Kernels by name. A program registers thousands in its constructors; those of PyTorch that are in
 * the table of families.c are computed where they are small, and say what else they write.
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

/* A kind of kernels, and what they have in common. */
struct family {
	const char *mark; /* what a readable name of its kind begins with, after its namespaces */
	/* At a kernel's first launch: what its name says of it. False: it is some other kernel. */
	bool (*parse)(struct kernel *k);
	/* True: all that it writes has been computed or forgotten. False: that is not known. */
	bool (*launch)(const struct call *c);
	bool large; /* an argument may take 32 KiB, as from CUDA 12.1 on, and not only 4 */
};

struct kernel {
	const void *host;
	const char *name; /* as registered */
	char *text;	  /* readable; as registered, if that is not C++; NULL: not looked at yet */
	bool seen;
	bool spins;		       /* for as many cycles as it is given */
	const struct family *family;   /* NULL: some other */
	const struct functor *functor; /* of each element: elements.c */
	const struct reducer *reducer; /* of all: reduce.c */
	char types[TYPES_MOST];	       /* in the order of its family; 0: one that is not known */
	int form;		       /* of those that the family knows */
	int operands;		       /* or lists */
	int column; /* of lists: bytes beside each tensor's address and size; others: their own */
	int result; /* of lists: which is written, -1 if any may be */
	struct image *image; /* its code; NULL: somewhere unknown */
	bool asked;	     /* for its parameters, which lie there: */
	int n_parameters;    /* -1: not known */
	struct parameter *parameters;
};

struct call {
	const struct kernel *k;
	void **args;
	unsigned int grid[3];
};

/* The host pointer is what a launch names. registry.c */
void kernel_register(const void *host, const char *name, struct image *image);
struct kernel *kernel_find(const void *host); /* NULL if unknown */

/* images.c: what a program registers is read when it is first asked for, what it loads at once. */
struct image *image_register(const void *binary); /* NULL if there is no memory */
struct image *image_load(const void *image);
void image_says(struct image *image, const char *name, const struct parameter *p, int n);
bool kernel_has_code(const struct kernel *k); /* that this card runs */
void image_gone(struct image *image); /* its code is no longer there, what was read of it is */
/* How many parameters a kernel has, and where they lie; -1: not known. */
int kernel_parameters(struct kernel *k, const struct parameter **parameters);

/* library_kernels.c: a launch of a library's function, whose parameters are these addresses. False:
 * nothing was launched. */
#define LIBRARY_WORDS 1024
struct library_work {
	uint64_t ns;
	bool collective;
};
bool library_call(const char *function, const uintptr_t *words, int n, void *stream,
		  const struct library_work *what);
bool library_check(const void *fn); /* is that what the driver is asked to launch? */
void library_launch(void *stream);  /* then this is what it does */
void library_run(void *stream, const struct library_work *what); /* or without the driver */

/* families.c */
const struct family *family_find(const char *text);
/* A launch: true if its effect on small contents has been done here. */
bool kernel_launch(const void *host, const unsigned int grid[3], void **args);
/* recorded.c: a launch, and a copy of it that owns its arguments (none, if it is not known where
 * they lie) and performs it. */
struct launch {
	const void *fn;
	unsigned int grid[3], block[3];
	size_t shared;
	void **args;
};
struct act *kernel_keep(const struct launch *l);
const struct launch *kernel_kept(const struct act *act); /* NULL if it is something else */
/* Records a launch into a graph, by the kernel's name. */
void kernel_record(const void *host, void *stream, const unsigned int grid[3], void **args);

/* Argument i as a whole number, and as an address: NULL if it is not on the device. */
int64_t call_number(const struct call *c, int i);
void *call_address(const struct call *c, int i);

/* Forgets everything that a kernel may have written, by its parameters' types; false if its name
 * does not show them. */
bool signature_forget(const struct call *c);
int signature_count(const struct kernel *k); /* of its parameters; -1: not known */

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

/* SPDX-License-Identifier: Apache-2.0
 *
 * Readable C++ names, taken apart: template arguments, a lambda's parameters, types of numbers.
 * A part is a place in the kernel's name and a length.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct kernel;

struct text {
	const char *at; /* NULL: there is no such part */
	size_t n;
};

/* The kernel's own template argument, from 0. */
struct text text_argument(const struct kernel *k, int i);
/* The kernel's own parameter, likewise. */
struct text text_parameter(const struct kernel *k, int i);
/* Within a part: argument i of what follows `mark`, which ends with '<' or '('. */
struct text text_argument_of(struct text t, const char *mark, int i);
/* The same for the last occurrence of `mark`. */
struct text text_last_argument_of(struct text t, const char *mark, int i);
bool text_has(struct text t, const char *mark);
struct text text_after(struct text t, const char *mark); /* the part after the mark */
int text_number(struct text t, int otherwise);
char text_type(struct text t); /* the letter of numbers.h; 0: not a number */

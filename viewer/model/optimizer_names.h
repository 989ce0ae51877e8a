/* SPDX-License-Identifier: Apache-2.0 */
/* Optimizers by their names: "AdamW" of the range "Optimizer.step#AdamW.step". */
#ifndef VIEWER_OPTIMIZER_NAMES_H
#define VIEWER_OPTIMIZER_NAMES_H

#include "spans.h"

#define OPTIMIZER_NAME 64
#define OPTIMIZERS     4 /* of one program that are named */

/* Of a range, or of a frame ("AdamW.step"); "" if it is neither. Returns buf. */
const char *optimizer_name(const char *of, char buf[OPTIMIZER_NAME]);
/* The one that made the latest step, up to that span; "" = no range names one. Returns buf. */
const char *optimizer_of_spans(const struct spans *s, size_t last, const struct defs *defs,
			       char buf[OPTIMIZER_NAME]);
/* All that made steps, in the order of their first ones: "SparseAdam, Adagrad". Returns buf. */
const char *optimizers_of_spans(const struct spans *s, const struct defs *defs, char *buf,
				size_t room);
/* Tensors of a parameter's size that it keeps; negative: not known, or smaller ones. */
int optimizer_tensors(const char *name);

#endif

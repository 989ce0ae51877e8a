/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PyTorch's kernels over tensors of any strides: their parameter begins with a table of sizes and
 * strides that has room for 25 dimensions. The unused part holds old contents of the stack, which
 * can include addresses.
 */
#pragma once

/* Words of 8 bytes that such a table takes at the parameter's beginning; 0 = no table. */
unsigned offset_table_words(const char *parameter, unsigned words);

/* A reduction has two such tables, and its addresses are the last of its parameter: the source, one
 * or two results, and three buffers. The second result is only written if there is one. */
#define REDUCTION_WORDS 6u
/* If a reduction's parameter ends there: a bit for each of the words that this launch uses, from
 * the lowest on, and where they begin; else 0. */
unsigned reduction_words(const char *end, const char **from);

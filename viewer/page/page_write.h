/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One self-contained page: the files of the assets folder, which are built into the tool, and two
 * JSON documents. The scripts stand between the documents, so that they draw the first before the
 * second is read.
 */
#pragma once

#include "../base/outfile.h"

enum page_kind {
	PAGE_RUN,    /* a recording, or the ranks of a run */
	PAGE_DIFF,   /* a comparison of two recordings */
	PAGE_SEARCH, /* cards and settings of a search */
	PAGE_LAKE,   /* the collected runs */
};

struct page_text {
	enum page_kind kind;
	const char *title;  /* any bytes */
	char *first, *rest; /* JSON documents, made by malloc */
	size_t first_len, rest_len;
};

/* Writes the page as a whole file of *bytes bytes. 0, or an exit code after an error message. */
int page_commit(struct outfile *file, const struct page_text *t, uint64_t *bytes);
void page_text_free(struct page_text *t); /* the documents */

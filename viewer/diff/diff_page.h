/* SPDX-License-Identifier: Apache-2.0 */
/* A comparison as a page: the document that page/assets/diff_*.js display. */
#pragma once

#include "../page/page.h"
#include "../page/page_redact.h"
#include "diff.h"

#define DIFF_PAGE_FINDINGS 200 /* at most; the others are counted */

/* Makes the documents of the page, which the caller frees. redact (or NULL) removes names from the
 * comparison itself, which can then be used for this page only. */
void diff_page(struct diff *d, struct page_text *text, struct redact *redact);

/* The tree of call paths, and the bytes of both sides on them. */
void diff_stacks_emit(struct page *p, const struct diff *d);

/* SPDX-License-Identifier: Apache-2.0 */
/* The dashboard: answers to the ready questions of a lake as the document of a page. */
#ifndef VIEWER_LAKE_PAGE_H
#define VIEWER_LAKE_PAGE_H

#include "../page/page_write.h"

/* Fills the documents of the text, to be freed. 0, or a sentence was said and the exit code. */
int lake_page(struct page_text *text, const char *lake);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One self-contained page: the files of viewer/page, which the tool carries inside it, around one
 * JSON document.
 */
#ifndef VIEWER_PAGE_WRITE_H
#define VIEWER_PAGE_WRITE_H

#include <stddef.h>
#include <stdio.h>

/* title: any bytes. json: one document, `len` bytes. */
void page_write(FILE *f, const char *title, const char *json, size_t len);

#endif

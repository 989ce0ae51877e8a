/* SPDX-License-Identifier: Apache-2.0 */
/* The result of a search as rows of documents, for its text, its JSON and its page. */
#ifndef VIEWER_SEARCH_ROWS_H
#define VIEWER_SEARCH_ROWS_H

#include "../documents/document.h"
#include "search.h"

/* Strings of the row that was filled last. */
struct search_rows {
	struct search *search;
	char setting[256], how[128], cause[64], text[2048], where[2048], class[64], line[1024];
	char error[2800], ended[4096], idle[512], late[512], recording[PATH_MAX], of_rank[PATH_MAX];
	char remedy[2][1024], rising[160];
	char *vary;
	const struct cell *cell;
};

struct rows_fit_card search_rows_cards(struct search_rows *r);
struct rows_fit_largest search_rows_largest(struct search_rows *r);
struct rows_fit_line search_rows_lines(struct search_rows *r);
struct rows_fit_unused search_rows_unused(struct search_rows *r);
void search_rows_free(struct search_rows *r);

#endif

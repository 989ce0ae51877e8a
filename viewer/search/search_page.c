/* SPDX-License-Identifier: Apache-2.0 */
#include "search.h"

int search_page(struct search *s)
{
	(void)s;
	return 0;
}

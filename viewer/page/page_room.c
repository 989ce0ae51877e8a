/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by all parts of a track: the number of rows that they may write, and the node of a
 * stack. */
#include "page.h"

#include <math.h>

#include "../base/sorted.h"

/* An outlier is further from the median than both, as in python/gpumemtrace/ranks/ranks_far.py. */
#define OUTLIER_PERCENT 2
#define OUTLIER_BYTES	(2u << 20) /* the smallest segment that an allocator allocates */

size_t page_room(const struct page *p, size_t rows, size_t least)
{
	size_t room = rows * p->scale / p->tracks;

	return room < least ? least : room;
}

uint32_t track_stack(struct track *t, uint32_t stack, uint64_t seq)
{
	return names_stack(&t->page->names, &t->timeline->stacks, &t->stacks, stack, seq);
}

/* The median is the lower of the two middle peaks, so that it is the peak of a track. */
void page_strays_emit(struct page *p)
{
	uint64_t sorted[PAGE_TRACKS], median;
	size_t middle = 0;

	memcpy(sorted, p->peaks, sizeof(sorted));
	qsort(sorted, p->written, sizeof(*sorted), sorted_numbers);
	median = p->written ? sorted[(p->written - 1) / 2] : 0;
	while (middle + 1 < p->written && p->peaks[middle] != median)
		middle++;
	emit_number(p->first, "median", median);
	emit_number(p->first, "middle", middle); /* the track with that peak */
	emit_array(p->first, "strays");
	for (size_t i = 0; i < p->written; i++)
		if (fabs((double)p->peaks[i] - (double)median) >
		    fmax(OUTLIER_BYTES, (double)median * OUTLIER_PERCENT / 100))
			emit_number(p->first, NULL, i);
	emit_end(p->first);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* One list of a pickle may stand in it at many places: how much is read in all is bounded. */
#include "../base/need.h"
#include "import_parts.h"

bool import_visit(struct import *im)
{
	if (im->budget) {
		im->budget--;
		return true;
	}
	im->error = "the same lists stand in it again and again";
	return false;
}

void import_add_item(struct import *im, struct import_item item)
{
	*need_item(im->items, im->item_count, im->item_room) = item;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What stands in a snapshot beside PyTorch's own facts if `attach` took it from a running process:
 * which program it is, and what its objects held at that moment.
 */
#include "import_parts.h"

void import_process_facts(struct import *im)
{
	static const char *const keys[] = { "argv", "torch.version" };
	const struct pickle_value *root = pickle_at(&im->p, im->p.root);
	const struct pickle_value *process = pickle_get(&im->p, root, "process");

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		const struct pickle_value *text = pickle_text(&im->p, process, keys[i]);

		if (text && text->count)
			import_meta_bytes(im, keys[i], text->text, text->count);
	}
}

enum { DEVICE, ADDRESS, BYTES, AS, NAME, COLUMNS };

static void tell_row(struct import *im, const struct pickle_value *const v[COLUMNS])
{
	struct gmt_event e = { .kind = GMT_TAG_HELD, .thread = THREAD_MAIN };

	if (v[DEVICE]->number < 0 || v[DEVICE]->number >= IMPORT_DEVICES)
		return;
	e.device = (int32_t)v[DEVICE]->number;
	e.addr = (uint64_t)v[ADDRESS]->number;
	e.size = (uint64_t)v[BYTES]->number;
	e.arg1 = (uint64_t)v[AS]->number;
	e.name = import_string(im, v[NAME]->text, v[NAME]->count);
	import_event(im, e);
}

void import_process_held(struct import *im)
{
	const struct pickle_value *root = pickle_at(&im->p, im->p.root), *row;
	const struct pickle_value *process = pickle_get(&im->p, root, "process");
	const struct pickle_value *held = pickle_list(&im->p, process, "held");

	for (uint32_t i = 0; (row = pickle_item(&im->p, held, i)) && import_visit(im); i++) {
		const struct pickle_value *v[COLUMNS];
		bool fine = true;

		for (uint32_t k = 0; k < COLUMNS; k++) {
			v[k] = pickle_item(&im->p, row, k);
			fine = fine && v[k] && v[k]->type == (k == NAME ? PICKLE_TEXT : PICKLE_INT);
		}
		if (fine)
			tell_row(im, v);
	}
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds a tensor by its Python object. Both refer to each other, as no other objects do, so no type
 * needs to be checked. Application threads; reads that cannot fault.
 */
#include "torch.h"

#include "../base/file.h"

#include <string.h>

/* c10::impl::SizesAndStrides lies before storage_offset_: a count, then five sizes and five
 * strides, or the address of more. Before it is the Python object's address, with flags in its
 * lowest bits. */
enum { SHAPE_BYTES = 88, SHAPE_INLINE = 5, IMPL_BYTES = 192, STORAGE_ROOM = 64 };

struct words {
	uint64_t at[IMPL_BYTES / 8];
};

static uint64_t word_at(const struct words *w, unsigned offset)
{
	return w->at[offset / 8];
}

/* Reads the impl of an at::Tensor, or until 2.10 of a c10::MaybeOwned, which begins with a flag. */
static bool read_impl(uintptr_t object, unsigned shape, struct words *impl)
{
	uint64_t words[2];

	if (!file_peek(words, object + (uintptr_t)python_layout()->object_type + 8, sizeof(words)))
		return false;
	for (unsigned i = 0; i < 2; i++)
		if (words[i] && !(words[i] & 7) && file_peek(impl, words[i], sizeof(*impl)) &&
		    (word_at(impl, shape - 8) & ~(uint64_t)7) == object)
			return true;
	return false;
}

static bool read_sizes(const struct words *impl, unsigned shape, struct variable *v)
{
	uint64_t count = word_at(impl, shape);

	if (count > GMT_VARIABLE_DIMS)
		return false;
	v->head.dims = (uint8_t)count;
	if (count > SHAPE_INLINE)
		return file_peek(v->sizes, word_at(impl, shape + 8), count * 8);
	for (unsigned i = 0; i < count; i++)
		v->sizes[i] = word_at(impl, shape + 8 + 8 * i);
	return true;
}

bool torch_read_object(uintptr_t object, struct variable *v)
{
	const struct torch_layout *l = torch_layout();
	struct words impl;
	struct torch_memory m;
	uint8_t storage[STORAGE_ROOM];

	if (!l || !read_impl(object, l->offset - SHAPE_BYTES, &impl) ||
	    !read_sizes(&impl, l->offset - SHAPE_BYTES, v) ||
	    !file_peek(storage, torch_storage_of(&impl), sizeof(storage)) ||
	    !torch_memory_in(&impl, storage, &m))
		return false;
	v->head.addr = m.addr;
	v->storage = torch_storage_of(&impl);
	v->head.bytes = m.size;
	v->head.type = (uint8_t)torch_type_of(&impl);
	return true;
}

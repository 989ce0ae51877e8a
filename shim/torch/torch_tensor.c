/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A tensor's memory, by loads alone: calls of the framework could run Python (a tensor that is a
 * wrapper), throw (no storage), or copy (a lazy copy). Application threads, any lock held.
 */
#include "torch.h"

/* Offsets that all releases of torch_versions.def share; IMPL_ and STORAGE_ after an object's
 * head. */
enum {
	IMPL_STORAGE = 0,  /* TensorImpl.storage_ */
	IMPL_AUTOGRAD = 8, /* TensorImpl.autograd_meta_ */
	STORAGE_DATA = 0,  /* StorageImpl.data_ptr_: pointer, ... */
	STORAGE_DEVICE = 24,
	STORAGE_BYTES = 32,
	META_NAME = 8, /* AutogradMeta.name_, then grad_ */
	STRING_OLD = 8,
	STRING_NEW = 32,
	CUDA = 1, /* c10::DeviceType */
};

/* Bytes of an element by c10::ScalarType. */
static const uint8_t element_bytes[] = {
	1, 1, 2, 4, 8, 2, 4, 8, 4, 8, 16, 1, 1, 1, 4, 2, 1, 1, 1, 1, 1, 1, 2, 1,
	1, 1, 1, 2, 4, 8, 1, 1, 1, 1, 1,  1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 4,
};

static uint64_t word(const void *object, unsigned offset)
{
	return *(const uint64_t *)((const char *)object + offset);
}

static const void *pointer(const void *object, unsigned offset)
{
	return (const void *)word(object, offset);
}

unsigned torch_type_of(const void *impl)
{
	return *(const uint16_t *)((const char *)impl + torch_layout()->dtype);
}

static uint64_t bytes_before(const void *impl, const struct torch_layout *l)
{
	uint64_t elements = word(impl, l->offset);
	unsigned type = torch_type_of(impl);

	return type < sizeof(element_bytes) ? elements * element_bytes[type] : 0;
}

static bool memory_of_storage(const void *storage, const struct torch_layout *l,
			      struct torch_memory *m)
{
	const int8_t *device = (const int8_t *)storage + l->head + STORAGE_DEVICE;

	m->addr = word(storage, l->head + STORAGE_DATA);
	m->size = word(storage, l->head + STORAGE_BYTES);
	m->device = device[1];
	/* a symbolic size is negative */
	return device[0] == CUDA && m->addr && (int64_t)m->size > 0;
}

bool torch_storage_memory(const void *storage, struct torch_memory *m)
{
	const struct torch_layout *l = torch_layout();

	return l && memory_of_storage(storage, l, m);
}

uintptr_t torch_storage_of(const void *impl)
{
	return word(impl, torch_layout()->head + IMPL_STORAGE);
}

bool torch_memory_in(const void *impl, const void *storage, struct torch_memory *m)
{
	const struct torch_layout *l = torch_layout();
	uint64_t before;

	if (!memory_of_storage(storage, l, m))
		return false;
	before = bytes_before(impl, l);
	if (before < m->size)
		m->addr += before;
	return true;
}

bool torch_memory_of(const void *impl, struct torch_memory *m)
{
	const void *storage = impl && torch_layout() ? (const void *)torch_storage_of(impl) : NULL;

	return storage && torch_memory_in(impl, storage, m);
}

static const void *autograd_of(const void *impl)
{
	const struct torch_layout *l = torch_layout();

	return impl && l ? pointer(impl, l->head + IMPL_AUTOGRAD) : NULL;
}

const void *torch_grad_of(const void *impl)
{
	const void *meta = autograd_of(impl);

	if (!meta)
		return NULL;
	return pointer(meta, META_NAME + (torch_old_strings() ? STRING_OLD : STRING_NEW));
}

/* grad_fn_ follows grad_. A view's node might be made only when the framework needs it. */
bool torch_has_grad_fn(const void *impl)
{
	const void *meta = autograd_of(impl);
	unsigned grad = META_NAME + (torch_old_strings() ? STRING_OLD : STRING_NEW);

	return meta && pointer(meta, grad + sizeof(void *));
}

struct gmt_event torch_event(uint16_t kind, const struct torch_memory *m, const void *arg0,
			     unsigned arg1)
{
	return (struct gmt_event){
		.kind = kind,
		.addr = m->addr,
		.size = m->size,
		.device = m->device,
		.arg0 = (uint64_t)(uintptr_t)arg0,
		.arg1 = arg1,
	};
}

void torch_tag(uint16_t kind, const struct torch_memory *m, const void *arg0)
{
	struct gmt_event e = torch_event(kind, m, arg0, 0);

	gmt_capture(&e);
}

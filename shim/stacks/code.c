/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies the parts of a code object that the viewer needs: file, qualified name, raw line table. On
 * the application's thread, while the frame that runs it keeps it alive; never later.
 */
#include "code.h"

#include "../../format/record.h"
#include "../base/intern.h"

#include <string.h>

static struct intern_table codes = { .levels = 2 };

static uint32_t put_utf8(uint8_t *out, uint32_t c)
{
	if (c < 0x80) {
		out[0] = (uint8_t)c;
		return 1;
	}
	if (c < 0x800) {
		out[0] = (uint8_t)(0xc0 | c >> 6);
		out[1] = (uint8_t)(0x80 | (c & 0x3f));
		return 2;
	}
	if (c < 0x10000) {
		out[0] = (uint8_t)(0xe0 | c >> 12);
		out[1] = (uint8_t)(0x80 | (c >> 6 & 0x3f));
		out[2] = (uint8_t)(0x80 | (c & 0x3f));
		return 3;
	}
	out[0] = (uint8_t)(0xf0 | c >> 18);
	out[1] = (uint8_t)(0x80 | (c >> 12 & 0x3f));
	out[2] = (uint8_t)(0x80 | (c >> 6 & 0x3f));
	out[3] = (uint8_t)(0x80 | (c & 0x3f));
	return 4;
}

static uint32_t char_at(const void *data, uint32_t kind, uint64_t i)
{
	if (kind == 1)
		return ((const uint8_t *)data)[i];
	return kind == 2 ? ((const uint16_t *)data)[i] : ((const uint32_t *)data)[i];
}

uint32_t code_text(uintptr_t str, uint8_t *out)
{
	const struct python_offsets *o = python_layout();
	uint32_t bits = *(const uint32_t *)(str + (uintptr_t)o->str_state) >>
			__atomic_load_n(&o->kind_shift, __ATOMIC_RELAXED);
	uint64_t len = *(const uint64_t *)(str + (uintptr_t)o->str_length);
	uint32_t kind = bits & 7, n = 0;
	bool ascii = bits & 16;
	const void *data = (const void *)(str + (uintptr_t)(ascii ? o->str_ascii : o->str_compact));

	if (!(bits & 8) || (kind != 1 && kind != 2 && kind != 4))
		return 0;
	for (uint64_t i = 0; i < len && n + 4 <= CODE_TEXT_MAX; i++)
		n += put_utf8(out + n, char_at(data, kind, i));
	return n;
}

static uintptr_t field_of(uintptr_t object, int16_t offset)
{
	return *(const uintptr_t *)(object + (uintptr_t)offset);
}

static uint32_t copy_table(uintptr_t bytes, uint8_t *out, uint32_t room, uint16_t *cut)
{
	const struct python_offsets *o = python_layout();
	uint64_t len = field_of(bytes, o->bytes_size);

	if (len > room) {
		len = room;
		*cut = 1;
	}
	memcpy(out, (const void *)(bytes + (uintptr_t)o->bytes_data), len);
	return (uint32_t)len;
}

static uint32_t describe(uintptr_t code, uint8_t *buf)
{
	const struct python_offsets *o = python_layout();
	struct gmt_def_code head = {
		.first_line = *(const uint32_t *)(code + (uintptr_t)o->code_first_line),
		.python = (uint16_t)(3 << 8 | o->minor),
	};
	uint32_t n = sizeof(head);
	uint16_t cut = 0;

	head.file_len = code_text(field_of(code, o->code_file), buf + n);
	n += head.file_len;
	head.name_len = code_text(
		field_of(code, o->code_qualname >= 0 ? o->code_qualname : o->code_name), buf + n);
	n += head.name_len;
	head.table_len = copy_table(field_of(code, o->code_table), buf + n, GMT_DEF_MAX - n, &cut);
	head.flags = cut;
	memcpy(buf, &head, sizeof(head));
	return n + head.table_len;
}

uint32_t code_id(struct thread *t, const struct python_code *k, uint8_t *buf)
{
	struct intern_entry *claimed;
	uint32_t id = intern_find(&codes, intern_mix(k->code ^ intern_mix(k->check)), k->code,
				  k->check, intern_same_words, &claimed);
	struct gmt_def d = { .kind = GMT_DEF_CODE, .payload = buf };

	if (OS_LIKELY(id != 0))
		return id;
	if (OS_UNLIKELY(!claimed))
		return 0;
	d.id = intern_new_id(&codes);
	d.len = describe(k->code, buf);
	id = thread_push_def(t, &d) ? d.id : INTERN_DEAD;
	intern_publish(claimed, k->code, k->check, id);
	return id == INTERN_DEAD ? 0 : id;
}

void codes_forget(void)
{
	intern_forget(&codes);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A log of facts that any thread appends to, without a lock, before and during a session; the drain
 * writes them into the recording. The same key and value are kept once.
 */
#include "facts.h"

#include "../../format/record.h"
#include "../capture.h"
#include "../rings/state.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define FACTS_MOST  256u
#define FACTS_BYTES (64u * 1024u)

struct fact {
	uint32_t at, key_len, len;
	uint32_t ready;
};

static struct fact facts[FACTS_MOST];
static char text[FACTS_BYTES];
static uint32_t fact_count, text_used, emitted;

static bool known(const char *key, size_t key_len, const char *value, size_t len)
{
	uint32_t n = __atomic_load_n(&fact_count, __ATOMIC_ACQUIRE);

	for (uint32_t i = n < FACTS_MOST ? n : FACTS_MOST; i-- > 0;) {
		const struct fact *f = &facts[i];

		if (__atomic_load_n(&f->ready, __ATOMIC_ACQUIRE) && f->key_len == key_len &&
		    !memcmp(text + f->at, key, key_len))
			return f->len == len && !memcmp(text + f->at + key_len, value, len);
	}
	return false;
}

void gmt_meta(const char *key, const char *value, size_t len)
{
	size_t key_len = strlen(key);
	uint32_t at, i;

	if (key_len + len > FACTS_BYTES / 2 || known(key, key_len, value, len))
		return;
	if (__atomic_load_n(&text_used, __ATOMIC_RELAXED) > FACTS_BYTES / 2)
		return;
	at = __atomic_fetch_add(&text_used, (uint32_t)(key_len + len), __ATOMIC_RELAXED);
	if (at + key_len + len > FACTS_BYTES)
		return;
	i = __atomic_fetch_add(&fact_count, 1, __ATOMIC_ACQ_REL);
	if (i >= FACTS_MOST)
		return;
	memcpy(text + at, key, key_len);
	memcpy(text + at + key_len, value, len);
	facts[i].at = at;
	facts[i].key_len = (uint32_t)key_len;
	facts[i].len = (uint32_t)len;
	__atomic_store_n(&facts[i].ready, 1, __ATOMIC_RELEASE);
	session_call_drain();
}

void facts_emit(bool (*emit)(const struct gmt_def *d), const char *key, const char *value,
		size_t len)
{
	static uint8_t payload[sizeof(struct gmt_def_meta) + 64 + FACTS_BYTES / 2];
	size_t key_len = strnlen(key, 64);
	struct gmt_def_meta head = { .key_len = (uint16_t)key_len };
	struct gmt_def d = { .kind = GMT_DEF_META, .payload = payload };

	if (len > FACTS_BYTES / 2)
		len = FACTS_BYTES / 2;
	memcpy(payload, &head, sizeof(head));
	memcpy(payload + sizeof(head), key, key_len);
	memcpy(payload + sizeof(head) + key_len, value, len);
	d.len = (uint32_t)(sizeof(head) + key_len + len);
	emit(&d);
}

void facts_emit_number(bool (*emit)(const struct gmt_def *d), const char *key, uint64_t n)
{
	char digits[24];
	int len = snprintf(digits, sizeof(digits), "%" PRIu64, n);

	facts_emit(emit, key, digits, (size_t)len);
}

void facts_emit_new(bool (*emit)(const struct gmt_def *d))
{
	uint32_t n = __atomic_load_n(&fact_count, __ATOMIC_ACQUIRE);

	for (; emitted < n && emitted < FACTS_MOST; emitted++) {
		const struct fact *f = &facts[emitted];
		char key[65];

		if (!__atomic_load_n(&f->ready, __ATOMIC_ACQUIRE))
			return;
		if (!f->key_len || f->key_len > 64)
			continue;
		memcpy(key, text + f->at, f->key_len);
		key[f->key_len] = 0;
		facts_emit(emit, key, text + f->at + f->key_len, f->len);
	}
}

void facts_repeat(void)
{
	emitted = 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The part of CUPTI's binary interface that gpumemtrace uses. It is the same in CUDA 11, 12 and 13;
 * tests/e2e/test_abi.py compares it with the headers.
 */
#pragma once

#include <stdint.h>

enum { CUPTI_DOMAIN_DRIVER = 1, CUPTI_DOMAIN_RUNTIME = 2 };
enum { CUPTI_SITE_ENTER = 0, CUPTI_SITE_EXIT = 1 };
enum { CUPTI_SHARED_SINCE = 130200 }; /* first version that allows several subscribers */

/* CUpti_CallbackData */
struct cupti_data {
	int site;
	const char *function;
	const uint64_t *params;
	const int *result;
	const char *symbol;
	void *context;
	uint32_t context_uid;
	uint64_t *correlation; /* for the subscriber's use; one word for both sites of a call */
	uint32_t correlation_id;
};

/* CUpti_SubscriberParams of 13.2 */
struct cupti_subscriber {
	uint64_t bytes;
	const char *name;
	char *old_name;
	uint64_t old_name_bytes;
	uint8_t allow_others;
	uint8_t padding[7];
};

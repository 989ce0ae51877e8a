/* SPDX-License-Identifier: Apache-2.0 */
/* The outcome of a failed allocation with another allocator setting. */
#pragma once

#include "alloc_conf.h"

struct replay_trial;

/* Outcome of the last request, for which the device had no memory. */
struct replay_refusal {
	enum {
		REFUSAL_UNKNOWN, /* an earlier failure would succeed: later requests would differ */
		REFUSAL_FITS,
		REFUSAL_STAYS,
		REFUSAL_EARLIER, /* an earlier request would already fail */
	} what;
	uint64_t bytes; /* a further request of that size would succeed, or: missing bytes */
	uint64_t error; /* greatest difference from the recorded reserved bytes */
	bool agrees;	/* at the end, the reserved bytes are as recorded */
};

void replay_refusal(struct replay_refusal *out, const struct replay_trial *t,
		    const struct alloc_settings *s);

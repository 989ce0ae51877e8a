/* SPDX-License-Identifier: Apache-2.0 */
/* What a refused request comes to with a setting of the allocator. */
#ifndef VIEWER_REPLAY_REPLAY_REFUSAL_H
#define VIEWER_REPLAY_REPLAY_REFUSAL_H

#include "alloc_conf.h"

struct replay_trial;

/* What becomes of the last request, which the device refused. */
struct replay_refusal {
	enum {
		REFUSAL_UNKNOWN, /* an earlier one is granted: the program would have gone on */
		REFUSAL_FITS,
		REFUSAL_STAYS,
		REFUSAL_EARLIER, /* a request before it is refused already */
	} what;
	uint64_t bytes; /* a further request of so many would be granted; or so many are lacking */
	uint64_t error; /* most that was reserved more or less than was recorded */
	bool agrees;	/* in the end as much as was recorded is reserved */
};

void replay_refusal(struct replay_refusal *out, const struct replay_trial *t,
		    const struct alloc_settings *s);

#endif

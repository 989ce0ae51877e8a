/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A recording's requests and its own setting, before others are tried: the common start of `advise`
 * and `oom`. `replay` takes its table of settings from here.
 */
#pragma once

#include "../recording/defs.h"
#include "replay.h"
#include "alloc_conf.h"

/* The recorded run's own allocator: its settings, and the features of its PyTorch. */

struct replay_own {
	char *conf; /* "default" if there is none; freed by replay_trial_close */
	struct alloc_settings settings;
	char why[SETTINGS_WHY]; /* why the default is used instead, or "" */
	unsigned release;	/* of PyTorch: 206 = 2.6, 0 = not known */
	bool whole_pools;	/* see struct replay_limits */
};

void replay_own(struct replay_own *own, const struct defs *defs);

/* The settings to try if none is named; the first is "default". */
extern const char *const replay_table[];
extern const size_t replay_table_count;

struct replay_trial {
	struct requests_all all;
	struct requests *requests; /* of the device */
	struct replay_own own;
	struct replay_limits limits;
	const char *why; /* why it cannot be replayed, or NULL; valid as long as this struct */
};

/* Reads the requests up to event `until`, except in the steps to leave out (NULL: none), and
 * studies them if they can be replayed. Returns 0, or an exit code after one error message. */
int replay_trial_open(struct replay_trial *t, struct recording *recording, int device,
		      uint64_t until, const struct repeats *leave);
void replay_trial_close(struct replay_trial *t);
/* False: the recorded PyTorch has no such setting. */
bool replay_trial_setting(const struct replay_trial *t, const char *conf, struct alloc_settings *s);

/* The outcome of a failed allocation with another allocator setting. */

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

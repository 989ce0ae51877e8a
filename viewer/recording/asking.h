/* SPDX-License-Identifier: Apache-2.0 */
/* Requests to a process that is being recorded, through the live file that it has mapped. */
#ifndef VIEWER_ASKING_H
#define VIEWER_ASKING_H

#include <stdbool.h>
#include <stdint.h>

#include "../../format/control.h"

struct asking {
	int fd;
	uint64_t bytes; /* of the live file that are mapped: whole regions */
	uint8_t *page;
	struct gmt_control *c;
	uint32_t pid;
};

/* recording: its path. 0, or a sentence was said and the exit code. */
int asking_open(struct asking *k, const char *recording);
void asking_close(struct asking *k);

/* Waits until it is carried out, at most five seconds. 0, or a sentence was said and EXIT_CHECK:
 * then it will not be carried out later either. */
int asking_ask(struct asking *k, enum gmt_request what, const char *text);

struct asking_rings {
	uint32_t rings, owned; /* that exist; that a thread writes into */
	uint64_t waiting;      /* slots that are not in the recording yet */
	uint32_t fullest;      /* slots of the one with most */
};

void asking_rings(const struct asking *k, struct asking_rings *out);

#endif

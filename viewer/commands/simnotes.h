/* SPDX-License-Identifier: Apache-2.0 */
/* Notices from the simulated device about the program that ran on it. */
#ifndef VIEWER_SIMNOTES_H
#define VIEWER_SIMNOTES_H

#include "run_result.h"

void simnotes_open(void);		   /* before the program starts */
void simnotes_close(struct run_result *r); /* after its end, and after run_result_find */
void simnotes_tell(const struct run_result *r);

#endif

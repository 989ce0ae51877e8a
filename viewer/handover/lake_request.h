/* SPDX-License-Identifier: Apache-2.0 */
/* What Python is given on its standard input: its own modules, what it is asked, and the bytes of
 * names and queries, a zero behind each. */
#ifndef VIEWER_LAKE_REQUEST_H
#define VIEWER_LAKE_REQUEST_H

#include "lake_engine.h"

void lake_request(struct bytes *out, const struct lake_question *q);

#endif

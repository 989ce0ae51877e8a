/* SPDX-License-Identifier: Apache-2.0 */
/* A model that a test feeds with events, one after the other. */
#pragma once

#include "recordings.h"

#include "../../viewer/model/model.h"

static struct defs defs;
static struct model m;
static uint64_t seq;

static void fresh(void)
{
	model_init(&m, &defs);
	seq = 0;
}

static void feed(struct gmt_event e)
{
	e.seq = ++seq;
	e.time_ns = seq * 10;
	model_event(&m, &e);
}

static void block(unsigned kind, uint64_t addr, uint64_t size)
{
	feed((struct gmt_event){ .kind = (uint16_t)kind, .addr = addr, .size = size });
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Requests of `gpumemtrace ctl`, and the recorder's own figures for it. The drain's thread. */
#pragma once

#include "../../format/event.h"

void requests_open(void); /* from now on requests are taken */

/* Carries out a pending request and writes the figures. mark(name) records an instant. */
void requests_look(uint64_t bytes, uint64_t dropped, void (*mark)(const char *name, size_t len));

void requests_dropped(uint64_t n); /* writes this figure alone, between two rounds */

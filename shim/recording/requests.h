/* SPDX-License-Identifier: Apache-2.0 */
/* Requests from outside, and the recorder's own figures for those who ask. The drain's thread. */
#pragma once

#include "../../format/event.h"

void requests_open(void); /* from now on requests are taken */

/* Carries out what is asked, if anything is, and writes the figures. mark(name) records an instant.
 */
void requests_look(uint64_t bytes, uint64_t dropped, void (*mark)(const char *name, size_t len));

void requests_dropped(uint64_t n); /* that figure alone, between two looks */

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of native functions, for readers on machines that do not have the program's libraries.
 */
#pragma once

#include "../../format/event.h"

#include <stdbool.h>

/* The thread that writes the file, at its end: defines the function of each native frame, as far as
 * objects that are loaded now export it. */
void names_emit(bool (*emit)(const struct gmt_def *d));

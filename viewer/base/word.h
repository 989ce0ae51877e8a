/* SPDX-License-Identifier: Apache-2.0 */
/* Characters of names in program text. */
#pragma once

#include "usual.h"

static inline bool word_has(char c)
{
	return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
	       (c >= 'A' && c <= 'Z');
}

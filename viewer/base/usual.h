/* SPDX-License-Identifier: Apache-2.0 */
/* The standard headers that most files use. What a file includes besides is what it asks of the
 * machine. */
#pragma once

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

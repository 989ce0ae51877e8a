/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where sentences for the user go. gmt_say itself is in capture.h.
 */
#pragma once

void say_setup(void); /* in the constructor: number 2 is what it is now */

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Setup of gmt_say, which is declared in capture.h.
 */
#pragma once

void say_setup(void); /* in the constructor: notes which file descriptor 2 is */

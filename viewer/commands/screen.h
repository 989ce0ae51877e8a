/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The terminal while a command owns it: its other page, keys without return. Given back when the
 * command ends, also by a signal. One thread.
 */
#ifndef VIEWER_SCREEN_H
#define VIEWER_SCREEN_H

#include <stdbool.h>
#include <stddef.h>

bool screen_open(void); /* false: stdin or stdout is no terminal */
void screen_close(void);

/* The whole page; lines that do not fit are cut off below. */
void screen_show(const char *text, size_t len);

/* Waits for a key; 0 = none came in that time, 'q' also for an end by a signal or of the input. */
int screen_key(unsigned milliseconds);

#endif

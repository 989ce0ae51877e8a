/* SPDX-License-Identifier: Apache-2.0 */
/* The value of an option --class: the name of a class of memory. */
#ifndef VIEWER_CLASS_OPTION_H
#define VIEWER_CLASS_OPTION_H

/* 0, or a sentence was said that names the classes, and EXIT_USAGE. */
int class_option(const char *name, int *category);

extern const char class_option_words[]; /* all names, a space between two */

#endif

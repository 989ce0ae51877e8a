/* SPDX-License-Identifier: Apache-2.0 */
/* Questions about recordings, found by the command's name. */
#ifndef VIEWER_QUESTIONS_H
#define VIEWER_QUESTIONS_H

#include "command.h"

const struct command *question_find(const char *name); /* or NULL */

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keys and values about the process. gmt_meta itself is in capture.h.
 */
#pragma once

#include "../../format/event.h"

/* For the thread that writes the file. */
void facts_emit_number(bool (*emit)(const struct gmt_def *d), const char *key, uint64_t n);
void facts_emit_new(bool (*emit)(const struct gmt_def *d)); /* new ones from gmt_meta */
void facts_emit(bool (*emit)(const struct gmt_def *d), const char *key, const char *value,
		size_t len);
void facts_repeat(void); /* in a forked child: emit all of them again */

/* meta.c: facts about the process itself. */
void meta_emit(bool (*emit)(const struct gmt_def *d));
void meta_emit_python(bool (*emit)(const struct gmt_def *d)); /* again after a change */
void meta_forget(void);

/* figures.c: the recorder's own figures, at the end; and the count of names that were left out, as
 * soon as there are any and at the end. */
void figures_emit(bool (*emit)(const struct gmt_def *d));
void figures_emit_names(bool (*emit)(const struct gmt_def *d), bool at_end);
void figures_forget(void); /* in a forked child */

/* script.c: path of the script that Python runs; NULL: there is none, or an installed one. */
const char *script_path(void);

/* gitinfo.c: the commit of the script and, where it is another one, of the working directory, by
 * reading .git. */
void gitinfo_emit(bool (*emit)(const struct gmt_def *d));

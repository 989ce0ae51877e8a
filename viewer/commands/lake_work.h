/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rows of many recordings for Python, which starts this: `gpumemtrace --lake-rows FOLDER TABLES
 * ALLOCATIONS EVENTS`. The three numbers are bits: which tables, and which columns of the two large
 * ones. Paths come on stdin, a zero behind each. On stdout a line of JSON for each recording, in
 * order: {"error": ...}, or {"bytes": N} and behind it N bytes: for each table a line "NAME BYTES"
 * and its rows. Those of the large tables go to the file FOLDER/NTH.NAME.
 */
#pragma once

#define LAKE_WORK "--lake-rows"

int lake_work(char *const *words); /* behind that; an exit code */

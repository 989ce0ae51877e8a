/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Facts of the recordings of a run that python/gpumemtrace/search follows and measures: a process
 * that reads a line for each question and answers with a line of JSON, null if the recording cannot
 * be read.
 *
 *   look PATH       of a run that goes on; reads on where the last look ended, and of the steps
 *                   only those that changed are sent
 *   whole PATH      of a run that ended
 *   written PATH    null unless its process still writes it
 *   complete PATH   the run was ended by gpumemtrace: makes a whole recording of it that says so
 */
#pragma once

#define SEARCH_FACTS "--search-facts" /* in place of a command */

int search_facts(void); /* returns the exit code */

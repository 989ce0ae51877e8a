/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The values that a search changes from run to run: options of the program (--vary batch=1,2,4) and
 * environment variables (--vary env:NAME=a,b). A setting has one value of each.
 */
#ifndef VIEWER_VARY_H
#define VIEWER_VARY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define VARY_MOST 8

struct vary {
	const char *name; /* without dashes, without "env:" */
	bool environment;
	char **values;
	size_t count;
	bool numeric;  /* all values are whole numbers */
	uint64_t step; /* if so: their greatest common divisor */
};

struct varied {
	struct vary items[VARY_MOST];
	size_t count;
};

struct setting {
	const char *values[VARY_MOST]; /* in the order of struct varied */
};

/* texts: each NAME=V1,V2, ending with NULL; or NULL. Returns 0, or an exit code after one error
 * message. */
int vary_parse(struct varied *out, char *const *texts);
void vary_free(struct varied *v);

size_t vary_settings(const struct varied *v); /* how many settings, at least 1 */
/* Setting number i; the last name changes fastest. */
struct setting vary_setting(const struct varied *v, size_t i);
bool vary_same(const struct varied *v, const struct setting *a, const struct setting *b);
/* Equal except for the value of one name. */
bool vary_same_but(const struct varied *v, const struct setting *a, const struct setting *b,
		   size_t at);

/* The program's command with those values: an existing option gets the value, else the option is
 * appended. To be freed. */
char **vary_command(const struct varied *v, const struct setting *s, char *const *command);
void vary_command_free(char **command);
void vary_environment(const struct varied *v, const struct setting *s); /* of this process */

/* "batch 4, seq 1024"; "" without varied names. */
const char *vary_words(const struct varied *v, const struct setting *s, char *buf, size_t room);
/* {"batch":4,"seq":1024}, to be freed. */
char *vary_json(const struct varied *v, const struct setting *s);

/* The first numeric name, or NULL; its index in *at. */
const struct vary *vary_counted(const struct varied *v, size_t *at);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* collect: recordings of many runs become tables that queries ask together. */
#include <ctype.h>
#include <string.h>
#include <sys/stat.h>

#include "../handover/lake_files.h"
#include "../handover/question.h"
#include "../ask/command.h"

/* An address: what lies in a store is not a folder. */
static const char *elsewhere(const struct collect_options *o)
{
	if (strstr(o->output, "://"))
		return o->output;
	for (char **file = o->files; *file; file++)
		if (strstr(*file, "://"))
			return *file;
	return NULL;
}

/* Letters, digits, and . _ - */
static bool is_good_name(const char *name)
{
	if (!*name || name[0] == '.' || strlen(name) > 100)
		return false;
	for (; *name; name++)
		if (!isalnum((unsigned char)*name) && !strchr("._-", *name))
			return false;
	return true;
}

static int check_places(const struct collect_options *o)
{
	struct stat st;

	if (elsewhere(o))
		return say_error(EXIT_USAGE,
				 "%s: collect reads and writes folders of this machine; copy "
				 "recordings here, and the lake there (aws s3 sync, for instance)",
				 elsewhere(o));
	if (o->project && !is_good_name(o->project))
		return say_error(EXIT_USAGE,
				 "--project needs a name of letters, digits, . _ and -, not \"%s\"",
				 o->project);
	if (!stat(o->output, &st) && !S_ISDIR(st.st_mode))
		return say_error(EXIT_USAGE, "%s exists and is no folder; choose another name",
				 o->output);
	return 0;
}

int run_collect(const struct collect_options *o, struct emit *out)
{
	struct lake_files files = { 0 };
	struct question q = { .out = out };
	int rc = check_places(o);

	if (!rc)
		rc = lake_files_find(&files, o->files);
	if (!rc) {
		question_begin(&q, QUESTION_LAKE, "collect");
		question_text(&q, "lake", o->output);
		question_text(&q, "project", o->project);
		question_number(&q, "large", o->tables != 0);
		lake_files_emit(&files, q.request);
		rc = question_ask(&q);
	}
	lake_files_free(&files);
	return rc;
}

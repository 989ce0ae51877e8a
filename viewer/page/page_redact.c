/* SPDX-License-Identifier: Apache-2.0 */
#include "page_redact.h"

#include "../base/ending.h"
#include "../recording/owners.h"

enum { SHORTEST = 3 /* bytes of an argument that is removed; "4" identifies nobody */ };

static const char left_out[] = "(left out)";

/* Whether a path is of a package, the standard library or the system, or no file (<string>). */
static bool is_public(const char *path)
{
	return !*path || strstr(path, "-packages/") || owners_is_stdlib(path) ||
	       words_begin(path, ONE_OF("/usr/lib", "/usr/local/lib", "/usr/local/cuda", "/lib",
					"<", "[", "??"));
}

static struct redact_file *add_file(struct redact *r, const char *path)
{
	const char *base = owners_base(path), *dot = strrchr(base, '.');
	char alias[64];
	struct redact_file *f = need_item(r->files, r->count, r->room);

	snprintf(alias, sizeof(alias), "local%zu%.8s", r->count, dot ? dot : "");
	f->path = need_text(path);
	f->alias = need_text(alias);
	return f;
}

const char *redact_path(struct redact *r, const char *path)
{
	if (is_public(path))
		return owners_base(path);
	for (size_t i = 0; i < r->count; i++)
		if (!strcmp(r->files[i].path, path) || !strcmp(r->files[i].alias, path))
			return r->files[i].alias;
	return add_file(r, path)->alias;
}

static void rename_file(struct redact *r, struct defs_text *file)
{
	if (is_public(file->s))
		return;
	file->s = redact_path(r, file->s);
	file->len = strlen(file->s);
}

/* Whether a word is an argument or the value of --name=value. Each argument ends with a zero. */
static bool is_argument(struct defs_text argv, const char *s, size_t len)
{
	const char *end = argv.s + argv.len;

	for (const char *a = argv.s; len >= SHORTEST && a < end; a += strlen(a) + 1) {
		const char *value = strchr(a, '=');

		if ((strlen(a) == len && !memcmp(a, s, len)) ||
		    (value && strlen(value + 1) == len && !memcmp(value + 1, s, len)))
			return true;
	}
	return false;
}

static bool is_file(const struct redact *r, const char *s, size_t len)
{
	return ANY_OF(x, r->files, r->count, words_equal(s, len, ONE_OF(owners_base(x->path))));
}

/* Whether a slash stands next to a character that is not a digit. "3/10" is no path. */
static bool is_path(const char *s, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (s[i] == '/' && ((i && !isdigit((unsigned char)s[i - 1])) ||
				    (i + 1 < len && !isdigit((unsigned char)s[i + 1]))))
			return true;
	return false;
}

static bool is_secret(const struct redact *r, const struct defs *d, const char *s, size_t len)
{
	struct defs_text host = defs_meta(d, "host");

	return is_path(s, len) || is_file(r, s, len) || is_argument(defs_meta(d, "argv"), s, len) ||
	       (len && host.len == len && !memcmp(host.s, s, len));
}

static size_t word_length(const char *s, const char *end)
{
	const char *at = s;

	while (at < end && !strchr(" \t\n\"'()[]{}<>,;=|#", *at))
		at++;
	return (size_t)(at - s);
}

static void clean_text(struct redact *r, const struct defs *d, struct defs_text *t)
{
	const char *end = t->s + t->len, *at = t->s;
	bool found = false;
	char *text = NULL;
	size_t len = 0;
	FILE *f = need_stream(&text, &len);

	for (size_t n; at < end; at += n) {
		n = word_length(at, end);
		if (n && is_secret(r, d, at, n)) {
			fputs(left_out, f);
			found = true;
		} else {
			n = n ? n : 1;
			fwrite(at, 1, n, f);
		}
	}
	fclose(f);
	if (!found) {
		free(text);
		return;
	}
	*need_item(r->texts, r->text_count, r->text_room) = text;
	*t = (struct defs_text){ text, len };
}

/* The first thread has the program's name, cut to 15 bytes. It is kept if that is python. */
static void clean_thread(struct redact *r, const struct defs *d, struct defs_text *name)
{
	struct defs_text argv = defs_meta(d, "argv");
	const char *base = owners_base(argv.s);

	if (name->len && strncmp(base, "python", 6) && !strncmp(base, name->s, name->len))
		*name = (struct defs_text){ left_out, sizeof(left_out) - 1 };
	clean_text(r, d, name);
}

void redact_recording(struct redact *r, struct recording *recording)
{
	struct defs *d = &recording->defs;
	struct defs_code *codes = d->codes.items;
	struct defs_symbol *symbols = d->symbols.items;
	struct defs_thread *threads = d->threads.items;
	struct defs_text *strings = d->strings.items;

	for (size_t i = 0; i < d->codes.count; i++)
		rename_file(r, &codes[i].file);
	for (size_t i = 0; i < d->symbols.count; i++)
		rename_file(r, &symbols[i].file);
	for (size_t i = 0; i < d->threads.count; i++)
		clean_thread(r, d, &threads[i].name);
	for (size_t i = 0; i < d->strings.count; i++)
		clean_text(r, d, &strings[i]);
}

/* Whether a fact identifies the user or the machine, so that it is left out as a whole. */
static bool is_private(const char *key)
{
	if (words_equal(key, strlen(key),
			ONE_OF("argv", "exe", "cwd", "host", "output", "git.root", "git.branch",
			       "git.remote", "git.cwd_root", "git.cwd_branch", "git.cwd_remote",
			       "env.MASTER_ADDR", "env.USER", "env.SLURM_JOB_NAME",
			       "env.SLURM_CLUSTER_NAME", "env.RAY_JOB_ID",
			       "env.GPUMEMTRACE_LABELS")))
		return true;
	return words_begin(key, ONE_OF("env.LSB_", "env.PBS_", "env.POD_", "env.GITHUB_", "env.CI_",
				       "env.WANDB_", "env.MLFLOW_")) ||
	       (!strncmp(key, "device.", 7) && strstr(key, ".uuid"));
}

void redact_facts(struct redact *r, struct recording *recording)
{
	struct defs *d = &recording->defs;
	struct defs_meta *metas = d->metas.items;
	struct defs_module *modules = d->modules.items;

	for (size_t i = 0; i < d->metas.count; i++)
		if (!is_private(metas[i].key.s))
			clean_text(r, d, &metas[i].value);
	for (size_t i = 0; i < d->metas.count; i++) /* last, because is_secret reads them */
		if (is_private(metas[i].key.s))
			metas[i].value = (struct defs_text){ left_out, sizeof(left_out) - 1 };
	for (size_t i = 0; i < d->modules.count; i++) {
		const char *name = owners_base(modules[i].path.s);

		modules[i].path = (struct defs_text){ name, strlen(name) };
	}
}

void redact_free(struct redact *r)
{
	for (size_t i = 0; i < r->count; i++) {
		free(r->files[i].path);
		free(r->files[i].alias);
	}
	for (size_t i = 0; i < r->text_count; i++)
		free(r->texts[i]);
	free(r->files);
	free(r->texts);
	*r = (struct redact){ 0 };
}

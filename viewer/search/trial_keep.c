/* SPDX-License-Identifier: Apache-2.0 */
/* The results of runs, as they lie in the folder of a search. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../base/bytes.h"
#include "../base/need.h"
#include "../base/plain_file.h"
#include "../base/say.h"
#include "../../format/version.h"
#include "trial.h"

/* A script that the command names: with another text it is another program. */
static uint64_t hash_file(uint64_t h, const char *path)
{
	struct stat st;
	char buf[4096];
	size_t n;
	FILE *f;

	if (stat(path, &st) || st.st_size > 1 << 20)
		return h;
	f = file_open_stream(path);
	while (f && (n = fread(buf, 1, sizeof(buf), f)))
		h = bytes_hash(h, buf, n);
	if (f)
		fclose(f);
	return h;
}

static uint64_t hash_settings(uint64_t h)
{
	static const char *const names[] = { "PYTORCH_", "CUDA_", "SIMGPU_" };

	for (char **e = environ; *e; e++)
		for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
			if (!strncmp(*e, names[i], strlen(names[i])))
				h = bytes_hash(h, *e, strlen(*e) + 1);
	return h;
}

uint64_t trial_hash(const struct trial *t, const struct plan *p, const char *const *files)
{
	char **command = vary_command(&p->varied, &t->setting, p->command);
	char *setting = vary_json(&p->varied, &t->setting);
	uint64_t h = bytes_hash(BYTES_HASH, GMT_TOOL_VERSION, strlen(GMT_TOOL_VERSION));

	for (char **c = command; *c; c++)
		h = bytes_hash(h, *c, strlen(*c) + 1);
	for (const char *const *f = files ? files : (const char *const *)command; *f; f++)
		h = hash_file(h, *f);
	h = hash_settings(bytes_hash(h, setting, strlen(setting)));
	h = bytes_hash(h, t->card->name, strlen(t->card->name));
	h = bytes_hash(h, &p->steps, sizeof(p->steps));
	h = bytes_hash(h, &p->look, sizeof(p->look));
	h = bytes_hash(h, &p->to_end, sizeof(p->to_end));
	h = bytes_hash(h, &p->world, sizeof(p->world));
	vary_command_free(command);
	free(setting);
	return h;
}

static void find_fingerprint(struct trial *t, const struct plan *p)
{
	char cwd[PATH_MAX];
	uint64_t h = trial_hash(t, p, NULL);

	if (getcwd(cwd, sizeof(cwd)))
		h = bytes_hash(h, cwd, strlen(cwd));
	snprintf(t->fingerprint, sizeof(t->fingerprint), "%016" PRIx64, h);
}

/* "h100-80g.batch-4"; a character that is not for names becomes "_". */
static void find_name(struct trial *t, const struct plan *p)
{
	size_t n = (size_t)snprintf(t->name, sizeof(t->name), "%s", t->card->name);
	bool odd = false;

	for (size_t i = 0; i < p->varied.count && n < sizeof(t->name); i++)
		n += (size_t)snprintf(t->name + n, sizeof(t->name) - n, ".%s-%s",
				      p->varied.items[i].name, t->setting.values[i]);
	for (char *c = t->name; *c; c++) {
		bool fine = (*c >= '0' && *c <= '9') || (*c >= 'a' && *c <= 'z') ||
			    (*c >= 'A' && *c <= 'Z') || strchr(".-_", *c);

		odd |= !fine && *c != '=';
		*c = fine ? *c : *c == '=' ? '-' : '_';
	}
	if (odd || n > 150)
		snprintf(t->name + (n > 150 ? 150 : n), 20, ".%.8s", t->fingerprint);
}

void trial_init(struct trial *t, const struct plan *p, const struct card *card,
		const struct setting *setting)
{
	*t = (struct trial){ .card = card, .setting = *setting };
	find_fingerprint(t, p);
	find_name(t, p);
}

void trial_free(struct trial *t)
{
	free(t->text);
	t->text = NULL;
}

static char *read_text(const char *path, size_t *len)
{
	FILE *f = file_open_stream(path);
	char *text = NULL;
	struct stat st;

	if (!f || fstat(fileno(f), &st) || st.st_size > 64 << 20) {
		if (f)
			fclose(f);
		return NULL;
	}
	text = need_new((size_t)st.st_size + 1);
	*len = fread(text, 1, (size_t)st.st_size, f);
	fclose(f);
	return text;
}

static const struct {
	const char *name;
	size_t at;
} figures[] = {
	{ "exit_code", offsetof(struct trial, code) },
	{ "steps", offsetof(struct trial, steps) },
	{ "limit_seconds", offsetof(struct trial, limit) },
	{ "peak_bytes", offsetof(struct trial, peak) },
	{ "peak_reserved_bytes", offsetof(struct trial, reserved) },
	{ "device_bytes", offsetof(struct trial, device) },
	{ "context_bytes", offsetof(struct trial, context) },
	{ "asked", offsetof(struct trial, asked) },
	{ "refusals", offsetof(struct trial, refusals) },
	{ "early", offsetof(struct trial, early) },
	{ "units", offsetof(struct trial, units) },
	{ "by_steps", offsetof(struct trial, by_steps) },
	{ "rising_bytes", offsetof(struct trial, rising) },
	{ "nccl_bytes", offsetof(struct trial, nccl) },
	{ "nccl_least_bytes", offsetof(struct trial, nccl_least) },
	{ "nccl_most_bytes", offsetof(struct trial, nccl_most) },
	{ "resident_bytes", offsetof(struct trial, resident) },
};
#define FIGURES (sizeof(figures) / sizeof(figures[0]))

void trial_write_figures(const struct trial *t, struct emit *out)
{
	for (size_t i = 0; i < FIGURES; i++)
		emit_number(out, figures[i].name,
			    *(const uint64_t *)((const char *)t + figures[i].at));
}

static const char *const verdicts[] = {
	[ENDING_NONE] = "",
	[ENDING_FITS] = "fits",
	[ENDING_REFUSED] = "does not fit",
	[ENDING_UNSTABLE] = "not stable",
	[ENDING_FAILED] = "failed",
};

const char *trial_verdict(enum ending e)
{
	return verdicts[e];
}

static void fill(struct trial *t)
{
	struct json verdict = json_member(t->document, "verdict");

	t->verdict = ENDING_FITS;
	while (t->verdict < ENDING_FAILED && !json_is(verdict, verdicts[t->verdict]))
		t->verdict++;
	for (size_t i = 0; i < FIGURES; i++)
		*(uint64_t *)((char *)t + figures[i].at) =
			json_unsigned(json_member(t->document, figures[i].name));
}

bool trial_read(struct trial *t, const struct plan *p)
{
	char path[PATH_MAX];
	size_t len = 0;

	trial_path(t, p, ".json", path);
	trial_free(t);
	t->text = read_text(path, &len);
	if (!t->text)
		return false;
	t->document = json_text(t->text, len);
	if (!json_is(json_member(t->document, "fingerprint"), t->fingerprint)) {
		trial_free(t);
		return false;
	}
	fill(t);
	return true;
}

/* It did what it was to do, and a device had no part in it. */
static bool ended_well(const struct trial *t)
{
	return !t->code && !json_member(t->document, "hangs").s;
}

const char *trial_failed(const struct trial *t)
{
	return t->limit	       ? "no answer"
	       : ended_well(t) ? "the program took no memory of a device"
			       : "the program failed";
}

int trial_say_failure(const struct trial *t, const struct plan *p)
{
	char words[2048], setting[256];
	bool failed = !t->limit && !ended_well(t);

	vary_words(&p->varied, &t->setting, setting, sizeof(setting));
	return say_error(EXIT_UNREADABLE, "%s on %s%s%s%s: %s", trial_failed(t), t->card->name,
			 setting[0] ? ", " : "", setting,
			 failed ? ", and memory was not the reason" : "",
			 trial_failure(t, words, sizeof(words)));
}

const char *trial_failure(const struct trial *t, char *buf, size_t room)
{
	char hangs[512], words[2048];

	if (trial_string(t, "late", buf, room)[0])
		return buf;

	trial_string(t, "last_words", words, sizeof(words));
	if (ended_well(t)) {
		snprintf(buf, room, "it ended with exit code 0; does it use the CPU alone?%s%s",
			 words[0] ? " It printed last: " : "", words);
	} else if (trial_string(t, "hangs", hangs, sizeof(hangs))[0]) {
		bool own = words[0] && strncmp(words, "gpumemtrace", 11);

		snprintf(buf, room, "it hangs: %s%s%s", hangs, own ? " It printed last: " : "",
			 own ? words : "");
	} else {
		snprintf(buf, room, "exit code %" PRIu64 ": %s", t->code, words);
	}
	return buf;
}

const char *trial_string(const struct trial *t, const char *member, char *buf, size_t room)
{
	return json_string(json_at(t->document, member), buf, room);
}

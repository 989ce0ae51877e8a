/* SPDX-License-Identifier: Apache-2.0 */
#include "vary.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../base/emit.h"
#include "../base/need.h"
#include "../base/say.h"

#define ENVIRONMENT "env:"

/* ---- what was given ---- */

static uint64_t common_step(uint64_t a, uint64_t b)
{
	while (b) {
		uint64_t rest = a % b;

		a = b;
		b = rest;
	}
	return a;
}

static void count_values(struct vary *v)
{
	v->numeric = true;
	for (size_t i = 0; i < v->count; i++) {
		const char *s = v->values[i];

		if (!*s || strlen(s) > 12 || s[strspn(s, "0123456789")])
			v->numeric = false;
		else
			v->step = common_step(v->step, strtoull(s, NULL, 10));
	}
	v->numeric = v->numeric && v->step;
}

static int parse_values(struct vary *v, const char *text, const char *s)
{
	size_t room = 0;

	for (;; s++) {
		size_t len = strcspn(s, ",");

		if (!len)
			return say_error(EXIT_USAGE, "--vary %s: a value is empty; give NAME=V1,V2",
					 text);
		*need_item(v->values, v->count, room) = need_copy(s, len);
		for (size_t i = 0; i + 1 < v->count; i++)
			if (!strcmp(v->values[i], v->values[v->count - 1]))
				return say_error(EXIT_USAGE, "--vary %s: %s stands there twice",
						 text, v->values[i]);
		s += len;
		if (!*s)
			break;
	}
	count_values(v);
	return 0;
}

static int parse_one(struct varied *out, const char *text)
{
	struct vary *v = &out->items[out->count];
	const char *name = text, *equals = strchr(text, '=');

	if (out->count == VARY_MOST)
		return say_error(EXIT_USAGE, "--vary can be given %d times at most", VARY_MOST);
	out->count++;
	v->environment = !strncmp(name, ENVIRONMENT, strlen(ENVIRONMENT));
	if (v->environment)
		name += strlen(ENVIRONMENT);
	else
		name += strspn(name, "-");
	if (!equals || equals <= name)
		return say_error(EXIT_USAGE,
				 "--vary %s: give a name and its values, such as batch=1,2,4",
				 text);
	v->name = need_copy(name, (size_t)(equals - name));
	for (size_t i = 0; i + 1 < out->count; i++)
		if (!strcmp(out->items[i].name, v->name))
			return say_error(EXIT_USAGE, "--vary %s was given twice", v->name);
	return parse_values(v, text, equals + 1);
}

int vary_parse(struct varied *out, char *const *texts)
{
	int rc = 0;

	*out = (struct varied){ .count = 0 };
	for (; !rc && texts && *texts; texts++)
		rc = parse_one(out, *texts);
	if (rc)
		vary_free(out);
	return rc;
}

void vary_free(struct varied *v)
{
	for (size_t i = 0; i < v->count; i++) {
		for (size_t k = 0; k < v->items[i].count; k++)
			free(v->items[i].values[k]);
		free(v->items[i].values);
		free((char *)v->items[i].name);
	}
	v->count = 0;
}

size_t vary_settings(const struct varied *v)
{
	size_t n = 1;

	for (size_t i = 0; i < v->count; i++)
		n *= v->items[i].count;
	return n;
}

struct setting vary_setting(const struct varied *v, size_t i)
{
	struct setting s = { { NULL } };

	for (size_t k = v->count; k-- > 0; i /= v->items[k].count)
		s.values[k] = v->items[k].values[i % v->items[k].count];
	return s;
}

bool vary_same_but(const struct varied *v, const struct setting *a, const struct setting *b,
		   size_t at)
{
	for (size_t i = 0; i < v->count; i++)
		if (i != at && strcmp(a->values[i], b->values[i]))
			return false;
	return true;
}

bool vary_same(const struct varied *v, const struct setting *a, const struct setting *b)
{
	return vary_same_but(v, a, b, VARY_MOST);
}

const struct vary *vary_counted(const struct varied *v, size_t *at)
{
	for (*at = 0; *at < v->count; (*at)++)
		if (v->items[*at].numeric)
			return &v->items[*at];
	return NULL;
}

/* ---- the command ---- */

/* Scripts write batch-size and batch_size for the same option. */
static bool is_name(const char *s, size_t len, const char *name)
{
	if (strlen(name) != len)
		return false;
	for (size_t i = 0; i < len; i++)
		if ((s[i] == '-' ? '_' : s[i]) != (name[i] == '-' ? '_' : name[i]))
			return false;
	return true;
}

static char *joined(const char *front, size_t len, const char *value)
{
	char *text = need_new(len + strlen(value) + 1);

	memcpy(text, front, len);
	strcpy(text + len, value);
	return text;
}

static void replace_text(char **at, char *text)
{
	free(*at);
	*at = text;
}

/* How the command writes options that have a value. */
enum form { FORM_APART, FORM_EQUALS, FORM_PLAIN };

static enum form form_of(char **command)
{
	size_t apart = 0, equals = 0, plain = 0;

	for (size_t i = 1; command[i]; i++) {
		const char *s = command[i];

		if (*s == '-')
			*(strchr(s, '=') ? &equals : &apart) += 1;
		else
			plain += strchr(s, '=') && !strchr(s, '/');
	}
	if (equals > apart)
		return FORM_EQUALS;
	return plain && !apart ? FORM_PLAIN : FORM_APART;
}

static size_t add_option(char **command, size_t n, const char *name, const char *value)
{
	enum form form = form_of(command);
	char text[512];

	if (form == FORM_APART) {
		snprintf(text, sizeof(text), "%s%s", strlen(name) == 1 ? "-" : "--", name);
		command[n++] = need_copy(text, strlen(text));
		command[n++] = need_copy(value, strlen(value));
		return n;
	}
	snprintf(text, sizeof(text), "%s%s=", form == FORM_EQUALS ? "--" : "", name);
	command[n++] = joined(text, strlen(text), value);
	return n;
}

/* Every place where the option stands, as the last of several counts; false: there is none. */
static bool replace(char **command, const char *name, const char *value)
{
	bool found = false;

	for (size_t i = 1; command[i]; i++) {
		const char *s = command[i];
		size_t dashes = strspn(s, "-"), len = strcspn(s + dashes, "=");

		if (!is_name(s + dashes, len, name))
			continue;
		if (s[dashes + len]) {
			replace_text(&command[i], joined(s, dashes + len + 1, value));
			found = true;
		} else if (dashes && command[i + 1]) {
			replace_text(&command[++i], need_copy(value, strlen(value)));
			found = true;
		}
	}
	return found;
}

char **vary_command(const struct varied *v, const struct setting *s, char *const *command)
{
	size_t n = need_count(command);
	char **out;

	out = need_new((n + 2 * v->count + 1) * sizeof(*out));
	for (size_t i = 0; i < n; i++)
		out[i] = need_copy(command[i], strlen(command[i]));
	for (size_t i = 0; i < v->count; i++)
		if (!v->items[i].environment && !replace(out, v->items[i].name, s->values[i]))
			n = add_option(out, n, v->items[i].name, s->values[i]);
	return out;
}

void vary_command_free(char **command)
{
	for (char **c = command; *c; c++)
		free(*c);
	free(command);
}

void vary_environment(const struct varied *v, const struct setting *s)
{
	for (size_t i = 0; i < v->count; i++)
		if (v->items[i].environment)
			setenv(v->items[i].name, s->values[i], 1);
}

/* ---- as words ---- */

const char *vary_words(const struct varied *v, const struct setting *s, char *buf, size_t room)
{
	size_t n = 0;

	buf[0] = 0;
	for (size_t i = 0; i < v->count && n < room; i++)
		n += (size_t)snprintf(buf + n, room - n, "%s%s %s", i ? ", " : "", v->items[i].name,
				      s->values[i]);
	return buf;
}

char *vary_json(const struct varied *v, const struct setting *s)
{
	char *text;
	size_t len;
	FILE *f = need_stream(&text, &len);
	struct emit *out = emit_open(f, true);

	emit_object(out, NULL);
	for (size_t i = 0; i < v->count; i++)
		if (v->items[i].numeric)
			emit_number(out, v->items[i].name, strtoull(s->values[i], NULL, 10));
		else
			emit_text(out, v->items[i].name, s->values[i]);
	emit_end(out);
	emit_close(out);
	fclose(f);
	text[strcspn(text, "\n")] = 0;
	return text;
}

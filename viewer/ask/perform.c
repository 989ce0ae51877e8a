/* SPDX-License-Identifier: Apache-2.0 */
/* Opens the data that a command needs: a recording, a device of it, a moment. */
#include "../recording/running.h"
#include "command.h"

static int of_device(const struct command *c, const void *options, struct emit *out,
		     struct recording *r)
{
	struct timeline t = { 0 };
	int rc = timeline_open(&t, r, *(const long *)((const char *)options + c->device));

	if (rc)
		return rc;
	rc = c->of_device(options, out, &t);
	timeline_close(&t);
	return rc;
}

static int of_moment(const struct command *c, const void *options, struct emit *out,
		     struct recording *r)
{
	struct moment_query at = *(const struct moment_query *)((const char *)options + c->at);
	struct timeline t;
	struct moment mo = { 0 };
	int rc = timeline_read(&t, r, &at);

	if (rc)
		return rc;
	rc = moments_take(r, &t.model, &mo, &at,
			  *(const long *)((const char *)options + c->device));
	if (!rc)
		rc = c->of_moment(options, out, &t, &mo);
	moment_free(&mo);
	timeline_close(&t);
	return rc;
}

void command_say_part(const struct command *c, const struct recording *r, const char *whose,
		      struct emit *out)
{
	const char *sentence = recording_state_sentence(recording_state(r));

	if (!sentence || c->part == PART_OWN)
		return;
	if (c->part == PART_NOTE || emit_json(out))
		say_note("%s: %s", r->path, sentence);
	else
		emit_sentence(out, "", "%s%s", whose, sentence);
}

static int answer_recording(const struct command *c, const void *options, struct emit *out)
{
	struct recording r;
	int rc = recording_open(&r, *(char *const *)((const char *)options + c->file));

	if (rc)
		return rc;
	rc = c->of_device   ? of_device(c, options, out, &r)
	     : c->of_moment ? of_moment(c, options, out, &r)
			    : c->answer(options, out, &r);
	if (!rc)
		command_say_part(c, &r, "", out);
	recording_close(&r);
	return rc;
}

int command_perform(const struct command *c, const void *options, struct emit *out)
{
	return c->run ? c->run(options, out) : answer_recording(c, options, out);
}

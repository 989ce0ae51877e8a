/* SPDX-License-Identifier: Apache-2.0 */
#include "moments.h"

#include "../../format/record.h"
#include "../base/human.h"
#include "../classes/study.h"
#include "kept.h"
#include "refusals.h"

/* TIME_NS as in the events, or seconds since the start as "1.83s". */
static bool parse_time(const char *text, struct moment_query *q)
{
	char *end;
	double seconds;

	errno = 0;
	q->kind = AT_TIME;
	q->time_ns = strtoull(text, &end, 10);
	if (!errno && end != text && !*end && text[0] != '-')
		return true;
	seconds = strtod(text, &end);
	if (end == text || strcmp(end, "s") || !(seconds >= 0 && seconds < 1e9))
		return false;
	q->since_start = true;
	q->time_ns = seconds * 1e9 + 0.5;
	return true;
}

static bool parse_mark(const char *text, struct moment_query *q)
{
	const char *hash = strrchr(text, '#');
	char *end;

	q->kind = AT_MARK;
	q->name = text;
	q->name_len = strlen(text);
	q->nth = 1;
	if (hash && hash[1] >= '0' && hash[1] <= '9') {
		uint64_t nth = strtoull(hash + 1, &end, 10);

		if (!*end) {
			q->nth = nth;
			q->name_len = hash - text;
		}
	}
	return q->nth > 0 && q->name_len > 0;
}

int moments_parse(const char *text, struct moment_query *q)
{
	static const struct {
		const char *word;
		enum moment_kind kind;
	} words[] = { { "peak", AT_PEAK }, { "end", AT_END }, { "oom", AT_OOM } };

	*q = (struct moment_query){ .text = text };
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (!strcmp(text, words[i].word)) {
			q->kind = words[i].kind;
			return 0;
		}
	if (!strncmp(text, "mark:", 5) ? parse_mark(text + 5, q) : parse_time(text, q))
		return 0;
	return say_usage("--at \"%s\" is not one of peak, end, oom, nanoseconds, seconds (1.5s), "
			 "mark:NAME, mark:NAME#K",
			 text);
}

struct survey {
	struct model *model;
	struct moment_query *query;
};

static bool is_mark(const struct model *m, const struct moment_query *q, const struct lives_mark *e)
{
	struct defs_text name;

	if (e->kind != GMT_RANGE_BEGIN && e->kind != GMT_MARK)
		return false;
	name = defs_string(m->defs, e->name);
	return name.len == q->name_len && !memcmp(name.s, q->name, name.len);
}

static void note_event(struct moment_query *q, uint64_t seq, uint64_t ns)
{
	q->found = true;
	q->seq = seq;
	q->ns = ns;
}

/* Finds a moment in the table of marks. */
static void find_moment(const struct model *m, struct moment_query *q)
{
	const struct row_store *marks = &m->lives.marks;
	struct refusal last;

	if (q->kind == AT_OOM && refusals_find(&last, &m->lives, 0))
		note_event(q, last.event.seq, last.event.ns);
	for (uint32_t i = 0; q->kind == AT_MARK && i < marks->count; i++) {
		const struct lives_mark *e = rows_at(marks, i);

		if (is_mark(m, q, e) && ++q->seen == q->nth)
			note_event(q, e->seq, e->ns);
	}
}

static int survey_event(void *ctx, const struct gmt_event *e)
{
	struct survey *s = ctx;
	struct moment_query *q = s->query;

	model_event(s->model, e);
	if (q && q->kind == AT_TIME &&
	    e->time_ns - (q->since_start ? s->model->first_ns : 0) <= q->time_ns)
		note_event(q, e->seq, e->time_ns);
	return 0;
}

int moments_read(struct recording *r, struct model *m, struct moment_query *q)
{
	struct survey s = { m, q };
	struct gmt_event e;
	int rc;

	if (r->kept && kept_lend(r->kept, m)) {
		if (q && q->kind == AT_TIME &&
		    kept_last_until(r->kept, r, q->time_ns + (q->since_start ? m->first_ns : 0),
				    &e))
			note_event(q, e.seq, e.time_ns);
		if (q)
			find_moment(m, q);
		return 0;
	}
	model_init(m, &r->defs);
	study_begin(m);
	rc = recording_run(r, survey_event, &s);
	model_settle(m);
	if (q)
		find_moment(m, q);
	return rc;
}

static int not_found(const struct moment_query *q)
{
	if (q->kind == AT_OOM)
		return say_usage("--at oom: memory did not run out in this recording");
	if (q->kind == AT_MARK && q->seen)
		return say_usage("--at %s: that mark occurs only %s", q->text,
				 MANY(q->seen, "time"));
	return say_usage("--at %s: no range or mark of that name in this recording", q->text);
}

int moments_resolve(const struct model *m, int device, const struct moment_query *q, uint64_t *seq)
{
	if (q->kind == AT_PEAK)
		*seq = model_curve(&m->devices[device])->peak.event.seq;
	else if (q->kind == AT_END)
		*seq = m->last_seq;
	else
		*seq = q->seq;
	return q->found || q->kind == AT_PEAK || q->kind == AT_END || q->kind == AT_TIME
		       ? 0
		       : not_found(q);
}

int moments_device(const struct recording *r, const struct model *m, long wanted, int *device)
{
	*device = wanted < 0 ? model_main_device(m) : (int)wanted;
	if (*device < 0)
		return say_usage("%s: no use of device memory was recorded", r->path);
	if (wanted >= MODEL_DEVICES || !m->devices[*device].seen)
		return say_usage("%s: nothing was recorded for device %ld", r->path, wanted);
	return 0;
}

int moments_take(const struct recording *r, struct model *m, struct moment *mo,
		 const struct moment_query *q, long device)
{
	int rc = moments_device(r, m, device, &mo->device);

	if (!rc)
		rc = moments_resolve(m, mo->device, q, &mo->seq);
	if (rc)
		return rc;
	mo->framework = m->devices[mo->device].framework;
	mo->time_ns = q->kind == AT_PEAK  ? model_curve(&m->devices[mo->device])->peak.event.time_ns
		      : q->kind == AT_END ? m->end_ns
					  : q->ns;
	model_take(m, mo);
	return 0;
}

uint64_t moments_bytes(const struct model *m, const struct moment *mo)
{
	const struct peak *peak = &model_curve(&m->devices[mo->device])->peak;

	return mo->seq == peak->event.seq && peak->bytes > mo->bytes ? peak->bytes : mo->bytes;
}

bool moments_state_only(const struct model *m)
{
	return m->state_seq && !m->changed_seq;
}

const char *moments_when(const struct model *m, uint64_t seq, uint64_t time_ns, char *buf,
			 size_t room)
{
	if (moments_state_only(m))
		snprintf(buf, room, ", a state at one moment");
	else if (seq && seq <= m->state_seq)
		snprintf(buf, room, ", when the trace began");
	else
		snprintf(buf, room, " at %s", SECONDS(time_ns - m->first_ns));
	return buf;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The description of a track: the program, the device, and the figures of `report`. */
#include <time.h>

#include "../answers/parts.h"
#include "../answers/private_pools.h"
#include "../answers/used.h"
#include "../moments/timeline.h"
#include "../recording/owner_words.h"
#include "page.h"

enum how { SHOW, HIDE /* left out by --redact */ };

static const struct {
	const char *key, *label;
	enum how how;
} rows[] = {
	{ "argv", "command", HIDE },
	{ "cwd", "folder", HIDE },
	{ "host", "host", HIDE },
	{ "pid", "process", SHOW },
	{ "rank", "rank", SHOW },
	{ "git.commit", "commit", SHOW },
	{ "git.branch", "branch", HIDE },
	{ "git.state", "changes", SHOW },
	{ "git.cwd_commit", "commit of the folder", SHOW },
	{ "git.cwd_branch", "branch of the folder", HIDE },
	{ "torch.version", "torch", SHOW },
	{ "torch.cuda", "torch's CUDA", SHOW },
	{ "python.version", "Python", SHOW },
	{ "driver.version", "CUDA driver", SHOW },
	{ "runtime.version", "CUDA runtime", SHOW },
	{ "env.PYTORCH_CUDA_ALLOC_CONF", "allocator settings", SHOW },
	{ "env.PYTORCH_ALLOC_CONF", "allocator settings", SHOW },
	{ "exe", "executable", HIDE },
	{ "source", "source", SHOW },
};

static void fact_text(struct defs_text value, char *buf, size_t room)
{
	size_t len = value.len < room - 1 ? value.len : room - 1;

	memcpy(buf, value.s, len);
	for (size_t i = 0; i < len; i++)
		buf[i] = buf[i] ? buf[i] : ' ';
	while (len && buf[len - 1] == ' ')
		len--;
	buf[len] = 0;
}

static void fact(struct track *t, const char *label, const char *text)
{
	emit_array(t->page->first, NULL);
	emit_text(t->page->first, NULL, label);
	emit_number(t->page->first, NULL, names_word(&t->page->words, text));
	emit_end(t->page->first);
}

static void emit_rows(struct track *t)
{
	const struct defs *d = &t->recording->defs;
	char text[280];
	struct defs_text v;

	emit_array(t->page->first, "facts");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		v = defs_meta(d, rows[i].key);
		if (!v.len || (t->page->redact && rows[i].how == HIDE))
			continue;
		if (!strcmp(rows[i].key, "argv"))
			command_words(d, text, sizeof(text));
		else
			fact_text(v, text, sizeof(text));
		fact(t, rows[i].label, text);
	}
	if (device_words(d, t->timeline->device, text, sizeof(text))[0])
		fact(t, "device", text);
	emit_end(t->page->first);
}

/* Notes about the parts that a converted snapshot lacks. */
static void emit_notes(struct track *t)
{
	char key[24];
	struct defs_text v;

	emit_array(t->page->first, "notes");
	for (unsigned i = 1;; i++) {
		snprintf(key, sizeof(key), "note.%u", i);
		v = defs_meta(&t->recording->defs, key);
		if (!v.len)
			break;
		emit_number(t->page->first, NULL, names_word(&t->page->words, v.s));
	}
	emit_end(t->page->first);
}

static void emit_apart(struct track *t, uint64_t seq)
{
	struct model *m = &t->timeline->model;
	struct moment mo = { .device = t->timeline->device,
			     .seq = seq,
			     .framework = t->timeline->framework };
	struct pool_sums pools;
	struct room room;

	model_take(m, &mo);
	pools = private_pools(m, &mo, &t->timeline->owners);
	room = room_at(m, &mo, NULL);
	page_apart_emit(t->page->first, &t->page->words, &pools, &room);
	moment_free(&mo);
}

/* Emits the bytes that are not used again, and the line that holds most of them. */
static void emit_unused(struct track *t, uint64_t seq)
{
	struct emit *out = t->page->first;
	struct snapshot s;
	struct used_up u;

	if (!uses_complete(&t->timeline->model))
		return;
	snapshot_take(&s, t->timeline, seq);
	used_up_find(&u, t->timeline, &s);
	emit_object(out, "unused");
	emit_number(out, "bytes", u.bytes);
	if (u.holders.count)
		names_owner(&t->page->words, out, &u.holders.items[0].owner);
	emit_end(out);
	used_up_free(&u);
	moment_free(&s.moment);
}

static void emit_peak(struct track *t)
{
	const struct model *m = &t->timeline->model;
	const struct peak *p = &model_curve(&m->devices[t->timeline->device])->peak;
	struct emit *out = t->page->first;
	struct instant at = { 0 };

	if (p->bytes)
		instant_of_highest(&at, t->timeline);
	emit_number(out, "peak_bytes", p->bytes);
	emit_number(out, "peak_time_ns", p->event.time_ns);
	emit_number(out, "peak_seq", p->event.seq);
	emit_number(out, "peak_last", p->event.size);
	emit_number(out, "peak_text", names_word(&t->page->words, at.text));
	emit_apart(t, p->event.seq);
	if (t->parts == TRACK_WHOLE)
		emit_unused(t, p->event.seq);
}

static void emit_figures(struct track *t)
{
	const struct model *m = &t->timeline->model;
	const struct model_device *d = &m->devices[t->timeline->device];
	const struct steps *s = &t->timeline->steps;
	struct emit *out = t->page->first;

	emit_number(out, "end_bytes", model_curve(d)->now);
	emit_number(out, "peak_reserved_bytes", model_peak_reserved(d));
	emit_number(out, "total_bytes", d->total_bytes);
	emit_number(out, "allocs", model_allocs(d));
	emit_number(out, "frees", model_frees(d));
	emit_number(out, "steps_done", s->count ? s->count - 1 - s->tail : 0);
	emit_number(out, "ooms", model_ooms(d));
	emit_number(out, "first_oom_ns", marks_first_oom(t));
	emit_number(out, "retries", d->retries);
	emit_number(out, "events", m->events);
	emit_number(out, "dropped", m->dropped);
	emit_number(out, "left_out", m->left_out);
	emit_number(out, "first_ns", m->first_ns);
	emit_number(out, "last_ns", m->last_ns);
	emit_number(out, "last_seq", m->last_seq);
	emit_signed(out, "wall", t->recording->info->realtime_minus_monotonic_ns);
	emit_number(out, "context", d->context);
	emit_number(out, "host", m->host.now);
}

static void emit_rank(struct track *t)
{
	struct defs_text rank = defs_meta(&t->recording->defs, "rank");

	if (!rank.len)
		rank = defs_meta(&t->recording->defs, "env.RANK");
	emit_bytes(t->page->first, "rank", rank.s, rank.len < 16 ? rank.len : 16);
}

void page_facts_emit(struct track *t)
{
	struct emit *out = t->page->first;
	const char *base = t->page->redact ? "a recording" : owners_base(t->recording->path);

	emit_number(out, "file", names_word(&t->page->words, base));
	emit_signed(out, "device", t->timeline->device);
	emit_flag(out, "state", moments_state_only(&t->timeline->model));
	emit_flag(out, "framework", t->timeline->framework);
	emit_flag(out, "self_reported",
		  t->timeline->model.devices[t->timeline->device].self_reported);
	emit_rank(t);
	emit_rows(t);
	emit_notes(t);
	emit_peak(t);
	emit_figures(t);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* An out-of-memory failure as JSON and as text for people who never saw this tool. */
#include <inttypes.h>
#include <string.h>

#include "../answers/parts.h"
#include "../base/human.h"
#include "oom.h"

#define B(n) human_bytes((char[HUMAN_MAX]){ 0 }, n)
#define WHO  28 /* columns for a line of code */

static void json_holders(const struct oom *o, struct emit *out)
{
	emit_array(out, "holders");
	for (size_t i = 0; i < o->holders.count; i++) {
		const struct oom_holder *h = &o->holders.items[i];

		emit_object(out, NULL);
		emit_text(out, "class", category_name(h->category));
		emit_owner(out, &h->owner);
		emit_number(out, "bytes", h->bytes);
		emit_number(out, "blocks", h->blocks);
		emit_number(out, "earlier_bytes", h->before);
		emit_end(out);
	}
	emit_end(out);
}

static void json_remedies(const struct oom *o, enum oom_cause cause, struct emit *out)
{
	struct oom_remedy list[OOM_REMEDIES];
	size_t n = oom_remedies(o, cause, list);

	emit_array(out, "remedies");
	for (size_t i = 0; i < n; i++) {
		emit_object(out, NULL);
		emit_text(out, "name", list[i].name);
		emit_text(out, "what", list[i].what);
		emit_number(out, "saves_bytes", list[i].saves);
		emit_flag(out, "enough", list[i].enough);
		emit_text(out, "how_known", list[i].how);
		emit_end(out);
	}
	emit_end(out);
}

static void json_grown(const struct oom *o, struct emit *out)
{
	emit_number(out, "compared_step", o->compared_step);
	emit_array(out, "grown");
	for (unsigned c = 0; c < CATEGORIES && o->compared_step; c++) {
		if (!o->compared[c] && !o->shot.bytes[c])
			continue;
		emit_object(out, NULL);
		emit_text(out, "class", category_name(c));
		emit_number(out, "bytes_before", o->compared[c]);
		emit_number(out, "bytes", o->shot.bytes[c]);
		emit_signed(out, "delta", (int64_t)(o->shot.bytes[c] - o->compared[c]));
		emit_end(out);
	}
	emit_end(out);
}

static void json_devices(const struct oom *o, struct emit *out)
{
	const struct oom_devices d = oom_devices(o);

	if (!d.count)
		return;
	emit_flag(out, "replicas", d.replicas);
	emit_array(out, "other_devices");
	for (int i = 0; i < MODEL_DEVICES; i++) {
		const struct model_device *device = &o->timeline.model.devices[i];

		if (i == o->timeline.device || !device->seen || !model_curve(device)->peak.bytes)
			continue;
		emit_object(out, NULL);
		emit_signed(out, "device", i);
		emit_number(out, "peak_bytes", model_curve(device)->peak.bytes);
		emit_end(out);
	}
	emit_end(out);
}

static void json_where(const struct oom *o, struct emit *out)
{
	emit_signed(out, "device", o->timeline.device);
	emit_number(out, "time_ns", o->refusal.event.time_ns);
	emit_number(out, "nth", o->refusal.nth);
	emit_number(out, "ooms", o->refusal.count);
	emit_flag(out, "went_on", o->refusal.later_allocs != 0);
	emit_number(out, "step", o->step);
	emit_text(out, "phase", phase_name(o->phase));
	emit_number(out, "stack", o->refusal.event.stack);
	emit_text(out, "class", category_name(o->wanted_category));
	emit_owner(out, &o->wanted_owner);
}

static void json_room(const struct oom *o, struct emit *out)
{
	emit_number(out, "block_bytes", o->block);
	emit_number(out, "total_bytes", o->total);
	emit_number(out, "allocated_bytes", o->allocated);
	emit_number(out, "reserved_bytes", o->reserved);
	emit_number(out, "cached_bytes", o->cached);
	emit_number(out, "library_bytes", o->libraries);
	emit_number(out, "context_bytes", o->context);
	emit_number(out, "other_bytes", o->others);
	emit_by_class(out, "categories", o->shot.bytes);
}

void oom_json(struct oom *o, enum oom_cause cause, const char *why, struct emit *out)
{
	emit_number(out, "asked_bytes", o->asked);
	emit_number(out, "free_bytes", o->free);
	emit_number(out, "largest_hole", o->hole);
	emit_text(out, "cause", oom_cause_name(cause));
	emit_text(out, "text", why);
	json_holders(o, out);
	json_remedies(o, cause, out);
	json_where(o, out);
	json_devices(o, out);
	json_room(o, out);
	json_grown(o, out);
}

static void text_head(const struct oom *o, struct emit *out)
{
	char who[OWNER_WORDS], where[INSTANT_MAX + 8] = "";

	if (o->timeline.steps.tail && o->instant.step == o->timeline.steps.count - 1)
		snprintf(where, sizeof(where), "After the passes of step %zu, %s",
			 o->instant.step - 1, o->instant.what);
	else
		instant_line(o->instant.text, where, sizeof(where));
	emit_title(out, "Out of memory on device %d: %s asked for by %s", o->timeline.device,
		   B(o->asked), owner_words(&o->wanted_owner, who, sizeof(who), 34));
	if (where[0])
		emit_paragraph(out, "", "  ", where);
	if (o->refusal.count > 1)
		emit_line(out, "Refusal %" PRIu64 " of %" PRIu64 " in this recording (--nth)",
			  o->refusal.nth, o->refusal.count);
	if (o->refusal.later_allocs)
		emit_line(out, "%s", "The program caught it and went on.");
	emit_line(out, "%s", "");
}

/* One card of several ran out: the others say whether the work is spread evenly. */
static void text_devices(const struct oom *o, struct emit *out)
{
	const struct oom_devices d = oom_devices(o);
	uint64_t here = model_curve(&o->timeline.model.devices[o->timeline.device])->peak.bytes;
	bool lower = d.most < here / 4 * 3;
	char text[600], most[48] = "";

	if (!d.count || (!d.replicas && !lower))
		return;
	if (d.highest != d.lowest)
		snprintf(most, sizeof(most), " to %s (device %d)", B(d.most), d.highest);
	snprintf(text, sizeof(text),
		 "%s. This device peaked at %s, the other%s at %s (device %d)%s%s%s",
		 d.replicas ? "The model runs as replicas on several devices (nn.DataParallel)"
			    : "The program uses several devices",
		 B(here), d.count == 1 ? "" : "s", B(d.least), d.lowest, most,
		 lower ? ": far lower" : "",
		 d.replicas && lower ? ". The first one also holds the weights that are copied, "
				       "their gradients and all results: "
				       "DistributedDataParallel spreads these."
				     : ".");
	emit_paragraph(out, "", "  ", text);
	emit_line(out, "%s", "");
}

static void figure(struct emit *out, const char *what, uint64_t bytes, const char *note)
{
	emit_line(out, "  %-28s %10s%s%s", what, B(bytes), note[0] ? "  " : "", note);
}

static void text_room(const struct oom *o, struct emit *out)
{
	char note[96];

	if (o->block != o->asked) {
		snprintf(note, sizeof(note), "for a tensor of %s", B(o->block));
		figure(out, "asked for", o->asked, note);
	} else {
		figure(out, "asked for", o->asked, "");
	}
	if (o->sampled) {
		snprintf(note, sizeof(note), "of %s", B(o->total));
		figure(out, "free on the device", o->free, o->total ? note : "");
	}
	figure(out, "in tensors", o->allocated, "");
	if (o->timeline.framework) {
		snprintf(note, sizeof(note), "in pieces; the largest %s", B(o->hole));
		figure(out, "cached, in no tensor", o->cached, o->cached ? note : "");
	}
	if (o->libraries)
		figure(out, "other libraries", o->libraries, "");
	if (o->context > o->others)
		figure(out, "context, loaded code", o->context - o->others, "");
	if (o->others)
		figure(out, "other processes", o->others, "at least");
	emit_line(out, "%s", "");
}

static void text_classes(const struct oom *o, struct emit *out)
{
	bool shown[CATEGORIES] = { false };
	char share[HUMAN_MAX], since[40], column[48] = "";

	if (o->compared_step)
		snprintf(column, sizeof(column), "since step %zu's peak", o->compared_step);
	emit_title(out, "  %-28s %10s  %5s  %s", "what it held", "bytes", "share", column);
	for (unsigned i = 0; i < CATEGORIES; i++) {
		unsigned best = CATEGORIES;
		int64_t delta;

		for (unsigned c = 0; c < CATEGORIES; c++)
			if (!shown[c] && o->shot.bytes[c] &&
			    (best == CATEGORIES || o->shot.bytes[c] > o->shot.bytes[best]))
				best = c;
		if (best == CATEGORIES)
			break;
		shown[best] = true;
		delta = (int64_t)(o->shot.bytes[best] - o->compared[best]);
		snprintf(since, sizeof(since), "%s%s", delta < 0 ? "-" : "+",
			 B((uint64_t)(delta < 0 ? -delta : delta)));
		emit_line(out, "  %-28s %10s  %5s  %s", category_words(best),
			  B(o->shot.bytes[best]),
			  human_share(share, o->shot.bytes[best], o->allocated),
			  o->compared_step ? since : "");
	}
	emit_line(out, "%s", "");
}

static int width_of(const struct oom *o, size_t most)
{
	size_t width = WHO;
	char who[OWNER_WORDS];

	for (size_t i = 0; i < o->holders.count && i < most; i++) {
		size_t len = strlen(
			owner_words_within(&o->holders.items[i].owner, who, sizeof(who), WHO));

		width = len > width ? len : width;
	}
	return (int)width;
}

static void text_holders(const struct oom *o, long top, struct emit *out)
{
	size_t most = top > 0 ? (size_t)top : o->holders.count;
	int width = width_of(o, most);
	char who[OWNER_WORDS], old[48];

	emit_title(out, "  %-*s %10s  %s", width, "the lines that hold most", "bytes", "class");
	for (size_t i = 0; i < o->holders.count && i < most; i++) {
		const struct oom_holder *h = &o->holders.items[i];

		old[0] = 0;
		if (h->before && oom_is_passing(h->category))
			snprintf(old, sizeof(old), ", %s older", B(h->before));
		emit_line(out, "  %-*s %10s  %s%s", width,
			  owner_words_within(&h->owner, who, sizeof(who), WHO), B(h->bytes),
			  category_words(h->category), old);
	}
	if (most < o->holders.count)
		emit_left_out(out, "  ", o->holders.count - most);
	emit_line(out, "%s", "");
}

static void text_remedies(const struct oom *o, enum oom_cause cause, struct emit *out)
{
	struct oom_remedy list[OOM_REMEDIES];
	size_t n = oom_remedies(o, cause, list);
	char lead[40];

	if (!n)
		return;
	emit_title(out, "%s", "What would have made room, by what was measured then");
	for (size_t i = 0; i < n; i++) {
		snprintf(lead, sizeof(lead), "  %10s%s ", B(list[i].saves),
			 list[i].enough ? " *" : "  ");
		emit_paragraph(out, lead, "               ", list[i].what);
		emit_paragraph(out, "               ", "               ", list[i].how);
	}
	emit_line(out, "%s", "  * as much as was missing, or more");
	emit_line(out, "%s", "");
}

void oom_text(struct oom *o, enum oom_cause cause, const char *why, long top, struct emit *out)
{
	char lead[64];

	text_head(o, out);
	snprintf(lead, sizeof(lead), "Cause: %s. ", oom_cause_name(cause));
	emit_paragraph(out, lead, "  ", why);
	emit_line(out, "%s", "");
	text_devices(o, out);
	text_room(o, out);
	text_classes(o, out);
	text_holders(o, top, out);
	text_remedies(o, cause, out);
	emit_line(out, "Where next: gpumemtrace live %s --at oom", o->timeline.recording->path);
	emit_line(out, "            gpumemtrace stack %s %u", o->timeline.recording->path,
		  o->refusal.event.stack);
}

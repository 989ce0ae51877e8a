/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recording settings of the two sides. If only one has stacks, or autograd's tags, a difference of
 * classes or lines might come from the recordings and not from the programs.
 */
#include "diff.h"
#include "../../format/record.h"

#define UNKNOWN	     ""
#define RECORDED     "recorded"
#define NOT_RECORDED "not recorded"

/* For a PyTorch snapshot its contents decide. A recording without the fact is unknown. */
static const char *by_what_is_there(const struct defs *d, bool any)
{
	if (any)
		return RECORDED;
	return defs_meta(d, "source").len ? NOT_RECORDED : UNKNOWN;
}

static bool has_frames(const struct defs *d, bool python)
{
	const struct defs_node *nodes = d->nodes.items;

	return ANY_OF(x, nodes, d->nodes.count, (x->frame == GMT_FRAME_PYTHON) == python);
}

static const char *stacks_of(const struct defs *d, const char *key, bool python)
{
	const char *fact = defs_meta(d, key).s;

	if (!*fact)
		return by_what_is_there(d, has_frames(d, python));
	if (strstr(fact, "there is no Python")) /* a property of the program, not a setting */
		return UNKNOWN;
	return !strncmp(fact, "yes", 3) ? RECORDED : NOT_RECORDED;
}

static const char *tags_of(const struct defs *d)
{
	const char *fact = defs_meta(d, "torch.tags").s;

	if (!*fact)
		return by_what_is_there(d, false);
	return strcmp(fact, "on") ? NOT_RECORDED : RECORDED;
}

const char *diff_recorded(const struct defs *d, enum diff_setting setting)
{
	if (setting == DIFF_TAGS)
		return tags_of(d);
	return setting == DIFF_PYTHON ? stacks_of(d, "python_stacks", true)
				      : stacks_of(d, "native_stacks", false);
}

/* Whether one side has it and the other does not; unknown on either side counts as equal. */
static bool differs(const struct diff *d, enum diff_setting setting)
{
	const char *old = diff_recorded(&d->old.recording.defs, setting);
	const char *new = diff_recorded(&d->new.recording.defs, setting);

	return *old && *new &&strcmp(old, new);
}

static bool has(const struct diff_side *s, enum diff_setting setting)
{
	return !strcmp(diff_recorded(&s->recording.defs, setting), RECORDED);
}

void diff_find_settings(struct diff *d)
{
	bool tags = differs(d, DIFF_TAGS), native = differs(d, DIFF_NATIVE);

	d->no_lines = differs(d, DIFF_PYTHON) ||
		      (native && !(has(&d->old, DIFF_PYTHON) && has(&d->new, DIFF_PYTHON)));
	d->no_nodes = tags;
	d->no_classes = d->no_lines || native || tags;
}

const char *diff_not_compared(const struct diff *d, char *buf, size_t room)
{
	static const char *const names[] = {
		[DIFF_PYTHON] = "Python stacks",
		[DIFF_NATIVE] = "native stacks",
		[DIFF_TAGS] = "autograd's tags",
	};
	bool many = false;

	buf[0] = 0;
	if (!d->no_classes)
		return buf;
	text_put(buf, room, "The recordings were made with different settings: ");
	for (int i = 0; i < DIFF_SETTINGS; i++)
		if (differs(d, i))
			many = text_add(buf, room, "%s%s are recorded in the %s one only",
					many ? ", " : "", names[i],
					has(&d->old, i) ? "old" : "new");
	text_add(buf, room, "%s",
		 d->no_lines ? ". Classes and lines of code cannot be compared, so no causes are "
			       "named: compare the sums and the phases."
			     : ". Classes cannot be compared: what follows is by line of code.");
	return buf;
}

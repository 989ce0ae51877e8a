/* SPDX-License-Identifier: Apache-2.0 */
/* The words of findings.def, with the figures of a finding in place of the names in braces. */
#include "advise.h"

struct finding_words {
	const char *name, *what, *how; /* how: NULL = that of the FINDING above */
};

static const struct finding_words table[] = {
#define FINDING(kind, find, needs, what, how) { #kind, what, how },
#define NAME(name, what, how)		      { #name, what, sizeof(how) > 1 ? how : NULL },
#define VARIANT(name, what, how)	      NAME(name, what, how)
#include "findings.def"
};

static struct finding_words words_of(const char *name)
{
	const char *how = NULL;

	FOR_EACH (const struct finding_words, x, table, sizeof(table) / sizeof(*table)) {
		how = x->how ?: how;
		if (!strcmp(x->name, name))
			return (struct finding_words){ name, x->what, how };
	}
	return (struct finding_words){ name, "", "" };
}

/* Puts the figure in place of "{bytes}", and the text in place of "{others:text}" if that figure is
 * not empty. */
static void put_words(const struct advise *a, const struct finding *f, const char *words,
		      char text[ADVISE_TEXT])
{
	char line[OWNER_WORDS] = "this line", of[OWNER_WORDS] = "", class[64] = "";
	const struct {
		const char *name, *value;
	} figures[] = {
		{ "line", line },
		{ "of", of },
		{ "class", class },
		{ "function", f->function ?: "" },
		{ "bytes", B(f->bytes) },
		{ "blocks", MANY(f->blocks, "block") },
		{ "size", f->size ? B(f->size) : "" },
		{ "when", a->when },
		{ "others", f->others ? "yes" : "" },
		{ "loaded", f->loaded ? "yes" : "" },
		{ "open", a->open ? "yes" : "" },
		{ "refused", a->wanted_count ? "yes" : "" },
	}, *x;
	const char *at = words, *open, *close;

	if (f->owner.function)
		owner_words(&f->owner, line, sizeof(line), 0);
	if (f->of.function)
		owner_words(&f->of, of, sizeof(of), 0);
	if (f->function)
		sites_class(f->function, class, sizeof(class));
	for (; (open = strchr(at, '{')) && (close = strchr(open, '}')); at = close + 1) {
		size_t n = strcspn(open + 1, ":}");

		text_add(text, ADVISE_TEXT, "%.*s", (int)(open - at), at);
		x = FIRST_OF(i, figures, sizeof(figures) / sizeof(*figures),
			     strlen(i->name) == n && !strncmp(i->name, open + 1, n));
		if (open[n + 1] == '}')
			text_add(text, ADVISE_TEXT, "%s", x->value);
		else if (x->value[0])
			text_add(text, ADVISE_TEXT, "%.*s", (int)(close - open - n - 2),
				 open + n + 2);
	}
	text_add(text, ADVISE_TEXT, "%s", at);
}

void advise_say(const struct advise *a, struct finding *f)
{
	const struct finding_words words = words_of(f->words ?: f->kind);

	if (!f->what[0])
		put_words(a, f, words.what, f->what);
	if (!f->how[0])
		put_words(a, f, words.how, f->how);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* diff: the changes in memory between two runs; a check for a pull request. */
#include "../base/outfile.h"
#include "../diff/diff_document.h"
#include "../diff/diff_page.h"
#include "../page/page_write.h"
#include "command.h"

static int check_limit(const struct diff *d, const struct diff_options *o)
{
	const struct option_amount *limit = &o->fail_above;
	uint64_t before = o->category < 0 ? d->old.peak : d->old.at_peak.bytes[o->category];
	uint64_t after = o->category < 0 ? d->new.peak : d->new.at_peak.bytes[o->category];
	char p[48];

	if (!limit->given || after <= before ||
	    after - before <= amount_bytes(&limit->amount, before))
		return 0;
	return say_error(EXIT_CHECK,
			 "%s%s went from %s to %s, %s (%s): more than the %s that is allowed%s%s",
			 o->category < 0 ? "the peak" : categories[o->category].words,
			 o->category < 0 ? "" : " at the peak", B_APART(before, after),
			 B_APART(after, before), CHANGE(after - before),
			 before ? diff_percent(p, before, after) : "from nothing", limit->text,
			 d->count ? ". First finding: " : "", d->count ? d->findings[0].text : "");
}

int check_diff(struct diff_options *o)
{
	size_t len = o->output ? strlen(o->output) : 0;

	if (o->output && (len < 6 || strcmp(o->output + len - 5, ".html")))
		return say_usage("-o \"%s\": diff writes a page; give a name that ends with .html",
				 o->output);
	if (o->redact && !o->output)
		return say_usage("--redact is for the page; name it with -o");
	if (o->category >= 0 && !o->fail_above.given)
		return say_usage("--class is for --fail-above; give both");
	return 0;
}

static int write_comparison(const struct diff_options *o, struct diff *d, struct emit *out,
			    struct outfile *file)
{
	struct page_text text = { .kind = PAGE_DIFF };
	struct redact redact = { 0 };
	char title[200];
	uint64_t bytes;
	int rc;

	diff_page(d, &text, o->redact ? &redact : NULL);
	snprintf(title, sizeof(title), "%.90s -> %.90s", owners_base(o->old), owners_base(o->new));
	text.title = o->redact ? "two recordings" : title;
	rc = page_commit(file, &text, &bytes);
	page_text_free(&text);
	redact_free(&redact);
	if (rc || o->markdown)
		return rc;
	emit_line(out, "%s", "");
	emit_line(out, "%s: %s, opens in any browser", o->output, B(bytes));
	return 0;
}

static void print_comparison(const struct diff_options *o, const struct diff *d, struct emit *out)
{
	struct diff_document doc;

	diff_document(&doc, d);
	emit_document(out, diff, &doc.row);
	if (o->markdown)
		emit_use_markdown(out);
	if (!emit_json(out))
		diff_print(&doc, out, o->top);
	command_say_part(&command_diff, &d->old.recording, "Old: ", out);
	command_say_part(&command_diff, &d->new.recording, "New: ", out);
	diff_document_free(&doc);
}

/* The page is written last, because --redact takes names out of the comparison itself. */
static int print_and_check(const struct diff_options *o, struct diff *d, struct emit *out,
			   struct outfile *file)
{
	int rc;

	print_comparison(o, d, out);
	rc = check_limit(d, o);
	if (o->output) {
		int written = write_comparison(o, d, out, file);

		rc = rc ? rc : written;
	}
	return rc;
}

int run_diff(const struct diff_options *o, struct emit *out)
{
	struct outfile file;
	struct diff d;
	int rc = o->output ? outfile_open(&file, o->output, OUTFILE_PAGE) : 0;

	if (rc)
		return rc;
	rc = diff_make(&d, o->old, o->new, o->device);
	if (rc && o->output)
		outfile_drop(&file);
	if (rc)
		return rc;
	rc = print_and_check(o, &d, out, &file);
	diff_free(&d);
	return rc;
}

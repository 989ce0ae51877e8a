/* SPDX-License-Identifier: Apache-2.0 */
/* open: writes the page of html into a temporary folder and starts the browser on it. */
#include "../base/plain_file.h"
#include "../ask/command.h"

/* Starts the browser in the background, without its output. False: none was found. xdg-open is used
 * only with a display, because without one it starts a browser in the terminal. */
static bool start_browser(const char *page)
{
	setenv("PAGE", page, 1);
	return !system(": \"${BROWSER:=${DISPLAY:+xdg-open}}\" "
		       "\"${BROWSER:=${WAYLAND_DISPLAY:+xdg-open}}\"\n"
		       "exec </dev/null >/dev/null 2>&1\n"
		       "command -v \"${BROWSER%% *}\" && { $BROWSER \"$PAGE\" & }");
}

int run_open(const struct open_options *o, struct emit *out)
{
	char folder[PATH_MAX], page[PATH_MAX + 16];
	struct html_options html = { .files = o->files, .output = page };
	struct row_open row = { .file = page };
	int rc = folder_make(folder, "open");

	if (rc)
		return rc;
	snprintf(page, sizeof(page), "%s/run.html", folder);
	rc = html_page(&html, &row.bytes);
	if (rc) {
		folder_remove(folder);
		return rc;
	}
	row.started = start_browser(page);
	emit_document(out, open, &row);
	emit_line(out, "%s: %s", page,
		  row.started ? "shown in the browser"
			      : "no browser was found here; open this file in one");
	return EXIT_OK;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "shell.h"

#include "emit_json.h"

static bool is_plain_text(const char *s)
{
	size_t len = strlen(s), n;

	for (; len; s += n, len -= n)
		if (!(n = emit_plain_char(s, len)))
			return false;
	return true;
}

static bool needs_no_quotes(const char *s)
{
	static const char fine[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				   "0123456789_./+,:@%=-";

	return *s && !s[strspn(s, fine)];
}

const char *shell_word(const char *path, char buf[SHELL_WORD])
{
	const char *before = path[0] == '-' ? "./" : "";
	bool plain = is_plain_text(path);
	size_t n;

	if (needs_no_quotes(path)) {
		snprintf(buf, SHELL_WORD, "%s%s", before, path);
		return buf;
	}
	n = (size_t)snprintf(buf, SHELL_WORD, "%s%s", plain ? "'" : "$'", before);
	for (const unsigned char *s = (const unsigned char *)path; *s && n < SHELL_WORD - 6; s++) {
		const char *form = *s == '\'' && plain			  ? "'\\''"
				   : (*s == '\'' || *s == '\\') && !plain ? "\\%c"
				   : !plain && (*s < 32 || *s > 126)	  ? "\\x%02x"
									  : "%c";

		n += (size_t)snprintf(buf + n, SHELL_WORD - n, form, *s);
	}
	snprintf(buf + n, SHELL_WORD - n, "'");
	return buf;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The demangler is the C++ library's own, loaded when the first C++ name comes: a machine without
 * it gets the names as they are in the object.
 */
#include "demangle.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

typedef char *demangler(const char *name, char *buf, size_t *len, int *status);

static demangler *find_demangler(void)
{
	static demangler *found;
	static bool tried;
	void *library;

	if (!tried) {
		tried = true;
		library = dlopen("libstdc++.so.6", RTLD_LAZY | RTLD_LOCAL);
		found = library ? (demangler *)dlsym(library, "__cxa_demangle") : NULL;
	}
	return found;
}

/* Some demanglers put a space between two closing brackets, as C++98 needed it. */
char *demangle(const char *name)
{
	int status;
	char *text = strncmp(name, "_Z", 2) || !find_demangler()
			     ? NULL
			     : find_demangler()(name, NULL, NULL, &status),
	     *to = text;

	for (const char *p = text; text && (*to = *p); p++)
		to += !(p > text && p[-1] == '>' && p[0] == ' ' && p[1] == '>');
	return text;
}

/* Bytes of an operator's own sign after "operator", which may look like brackets. */
static size_t operator_sign(const char *p)
{
	return strncmp(p, "operator", 8) ? 0 : 8 + (p[8] == '(' ? 2 : strspn(p + 8, "<>=-!+*/[]"));
}

const char *demangle_brief(const char *name, char *buf, size_t room)
{
	static const char nameless[] = "(anonymous namespace)";
	size_t len = 0, depth = 0, n;

	for (const char *p = name; *p && len + sizeof(nameless) + 16 < room; p += n) {
		n = !strncmp(p, nameless, sizeof(nameless) - 1) ? sizeof(nameless) - 1
								: operator_sign(p);
		if (!n && *p == '(' && !depth)
			break;
		depth -= !n && *p == '>' && depth;
		n = n ? n : 1;
		if (!depth) {
			memcpy(buf + len, p, n);
			len += n;
		}
		depth += n == 1 && *p == '<';
	}
	buf[len] = 0;
	return len ? buf : name;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The PyTorch that runs: read once, from the file beside its libraries, at the first call of a hook
 * or the start of the session. Any thread, any lock held; a thread that asks while another one
 * reads gets nothing.
 */
#include "torch.h"

#include "../base/config.h"
#include "../base/elfsym.h"
#include "../base/file.h"
#include "../base/os.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CXX11_SYMBOL \
	"_ZN3c105ErrorC1ENS_14SourceLocationENSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE"

enum state { UNREAD = 0, READING, NOT_THERE, READ };

enum {
#define LAYOUT(name, head, offset, dtype, variable) LAYOUT_##name,
#include "torch_versions.def"
};

static const struct torch_layout layouts[] = {
#define LAYOUT(name, head, offset, dtype, variable) { head, offset, dtype, variable },
#include "torch_versions.def"
};

static const struct release {
	int major, minor, layout;
} releases[] = {
#define TORCH(major, minor, layout) { major, minor, LAYOUT_##layout },
#include "torch_versions.def"
};

static const struct function_release {
	int major, minor;
	struct torch_function offsets;
} functions[] = {
#define FUNCTION(major, minor, object, saved, stride) { major, minor, { object, saved, stride } },
#include "torch_versions.def"
};

static struct {
	uint32_t state;
	const struct torch_layout *layout;
	const struct torch_function *function;
	bool old_strings;
	struct torch_release release;
} torch;

void *torch_real(void **cache, const char *name)
{
	void *p = __atomic_load_n(cache, __ATOMIC_RELAXED);

	if (OS_LIKELY(p != NULL))
		return p;
	p = elfsym_find(name);
	__atomic_store_n(cache, p, __ATOMIC_RELAXED);
	return p;
}

/* Copies the text between quotes in the line that begins with `key` (a newline first). */
static bool quoted(const char *text, const char *key, char *out, size_t room)
{
	const char *at = strstr(text, key), *end, *line;
	size_t n;

	if (!at || !(line = strchr(at + 1, '\n')) || !(at = strchr(at, '\'')) || at > line)
		return false;
	end = strchr(++at, '\'');
	n = end ? (size_t)(end - at) : 0;
	if (!n || n >= room)
		return false;
	memcpy(out, at, n);
	out[n] = 0;
	return true;
}

/* version.py of a Python package, build-version of the C++ distribution. */
static bool read_version(void)
{
	static char path[4200], text[2048] = "\n"; /* 2.1 has the version in the first line */
	char *slash;
	ssize_t n;

	if (!elfsym_path("libc10.so", path, sizeof(path) - 32))
		return false;
	slash = strrchr(path, '/');
	strcpy(slash, "/../version.py");
	n = file_text(path, text + 1, sizeof(text) - 2);
	if (n > 0) {
		text[n + 1] = 0;
		quoted(text, "\ncuda", torch.release.cuda, sizeof(torch.release.cuda));
		return quoted(text, "\n__version__", torch.release.version,
			      sizeof(torch.release.version));
	}
	strcpy(slash, "/../build-version");
	n = file_text(path, torch.release.version, sizeof(torch.release.version) - 1);
	if (n > 0)
		torch.release.version[strcspn(torch.release.version, "\r\n")] = 0;
	return n > 0;
}

/* Finds the verified layouts of the release that runs. */
static void look_up_release(void)
{
	char *dot;
	long major = strtol(torch.release.version, &dot, 10);
	long minor = *dot == '.' ? strtol(dot + 1, NULL, 10) : -1;

	for (unsigned i = 0; i < sizeof(releases) / sizeof(releases[0]); i++)
		if (releases[i].major == major && releases[i].minor == minor)
			torch.layout = &layouts[releases[i].layout];
	for (unsigned i = 0; i < sizeof(functions) / sizeof(functions[0]); i++)
		if (functions[i].major == major && functions[i].minor == minor)
			torch.function = &functions[i].offsets;
}

static uint32_t read_release(void)
{
	uint32_t state = UNREAD;

	if (!__atomic_compare_exchange_n(&torch.state, &state, READING, false, __ATOMIC_ACQUIRE,
					 __ATOMIC_ACQUIRE))
		return state;
	if (read_version())
		look_up_release();
	torch.old_strings = !elfsym_find(CXX11_SYMBOL);
	state = elfsym_find("_ZN3c1010TensorImpl17release_resourcesEv") ? READ : UNREAD;
	__atomic_store_n(&torch.state, state, __ATOMIC_RELEASE);
	return state;
}

static bool ready(void)
{
	uint32_t state = __atomic_load_n(&torch.state, __ATOMIC_ACQUIRE);

	if (OS_UNLIKELY(state == UNREAD))
		state = read_release();
	return state == READ;
}

const struct torch_layout *torch_layout(void)
{
	return ready() ? torch.layout : NULL;
}

const struct torch_function *torch_function(void)
{
	return ready() ? torch.function : NULL;
}

bool torch_old_strings(void)
{
	return torch.old_strings;
}

bool torch_tags(void)
{
	return gmt_recording() && gmt_config.tags && torch_layout();
}

const struct torch_release *torch_release(void)
{
	return ready() ? &torch.release : NULL;
}

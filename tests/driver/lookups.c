/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a driver library gives for every hooked name, by dlsym and by cuGetProcAddress, written as
 * lines: "symbol NAME WHERE", "ask BY NAME VERSION FLAGS RC STATUS WHERE". WHERE is "none",
 * "driver+OFFSET" or "FILE:SYMBOL" for a function of any other object. The names are those of
 * hooks.def and the ones on the command line; no function but those that look up is called.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static void *driver;
static void *base;

static const char *const symbols[] = {
#define DRIVER(symbol, name, version, per_thread, proto, args, effect) #symbol,
#define USES_DRIVER(symbol, proto)				       #symbol,
#include "../../shim/hooks.def"
};

static const char *const names[] = {
#define DRIVER(symbol, name, version, per_thread, proto, args, effect) #name,
#include "../../shim/hooks.def"
};

static const int versions[] = {
	1000,  2000,  2010,  2020,  3000,  3020,  4000,	 4010,	5000,  6000,  6050,  7000,
	8000,  9000,  10000, 10020, 11000, 11010, 11020, 11030, 11040, 11060, 11080, 12000,
	12010, 12020, 12030, 12040, 12050, 12060, 12080, 12090, 13000, 13010, 13020, 14000,
};

#define COUNT(table) (int)(sizeof(table) / sizeof((table)[0]))

static const char *where(void *p, char *text, size_t room)
{
	Dl_info info = { 0 };

	if (!p)
		return "none";
	if (!dladdr(p, &info) || !info.dli_fname)
		return "unknown";
	if (info.dli_fbase == base)
		snprintf(text, room, "driver+%#zx", (size_t)((char *)p - (char *)base));
	else
		snprintf(text, room, "%s:%s", strrchr(info.dli_fname, '/') + 1,
			 info.dli_sname && info.dli_saddr == p ? info.dli_sname : "?");
	return text;
}

static void by_symbol(const char *name)
{
	char text[256];

	printf("symbol %s %s\n", name, where(dlsym(driver, name), text, sizeof(text)));
}

typedef int ask_old(const char *name, void **fn, int version, uint64_t flags);
typedef int ask_new(const char *name, void **fn, int version, uint64_t flags, int *status);

static void by_version(const char *by, const char *name, int version, int flags)
{
	void *ask = dlsym(driver, by), *p = NULL;
	int status = -1, rc;
	char text[256];

	if (!ask)
		return;
	if (strstr(by, "_v2"))
		rc = ((ask_new *)ask)(name, &p, version, (uint64_t)flags, &status);
	else
		rc = ((ask_old *)ask)(name, &p, version, (uint64_t)flags);
	printf("ask %s %s %d %d %d %d %s\n", by, *name ? name : "-", version, flags, rc, status,
	       where(p, text, sizeof(text)));
}

static void by_all_versions(const char *name)
{
	for (int v = 0; v < COUNT(versions); v++) {
		for (int flags = 0; flags < 3; flags++) {
			by_version("cuGetProcAddress_v2", name, versions[v], flags);
			by_version("cuGetProcAddress", name, versions[v], flags);
		}
	}
}

int main(int argc, char **argv)
{
	Dl_info info;

	driver = dlopen("libcuda.so.1", RTLD_NOW);
	if (!driver || !dladdr(dlsym(driver, "cuInit"), &info)) {
		printf("no driver: %s\n", dlerror());
		return 1;
	}
	base = info.dli_fbase;
	for (int i = 0; i < COUNT(symbols); i++)
		by_symbol(symbols[i]);
	by_version("cuGetProcAddress_v2", "", 0, 0);
	for (int i = 0; i < COUNT(names); i++)
		if (!i || strcmp(names[i], names[i - 1]))
			by_all_versions(names[i]);
	for (int i = 1; i < argc; i++)
		by_all_versions(argv[i]);
	return 0;
}

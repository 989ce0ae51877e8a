/* SPDX-License-Identifier: Apache-2.0 */
#include "human.h"

#include <math.h>
#include <strings.h>

bool amount_parse(const char *text, struct amount *a)
{
	static const struct {
		const char *name;
		double bytes;
	} units[] = { { "", 1 },
		      { "B", 1 },
		      { "KiB", 1024 },
		      { "MiB", 1048576 },
		      { "GiB", 1073741824 },
		      { "TiB", 1099511627776 },
		      { "KB", 1e3 },
		      { "MB", 1e6 },
		      { "GB", 1e9 },
		      { "TB", 1e12 } };
	char *end;

	errno = 0;
	a->value = strtod(text, &end);
	if (errno || end == text || !(a->value >= 0) || !isfinite(a->value))
		return false;
	end += strspn(end, " ");
	a->percent = !strcmp(end, "%");
	if (a->percent)
		return true;
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		if (!strcasecmp(end, units[i].name)) {
			a->value *= units[i].bytes;
			return a->value < 1e18;
		}
	return false;
}

uint64_t amount_bytes(const struct amount *a, uint64_t all)
{
	return (uint64_t)(a->percent ? a->value / 100 * (double)all : a->value);
}

#define DIGITS_MOST 3 /* decimals; figures that are still equal are printed in bytes */

static void put_bytes(char buf[HUMAN_MAX], uint64_t bytes, int digits)
{
	static const char *const units[] = { "KiB", "MiB", "GiB", "TiB", "PiB", "EiB" };
	double value = bytes / 1024.0;
	unsigned u = 0;

	if (bytes < 1024) {
		snprintf(buf, HUMAN_MAX, "%" PRIu64 " B", bytes);
		return;
	}
	for (; value >= 1023.95 && u < 5; u++)
		value /= 1024;
	snprintf(buf, HUMAN_MAX, "%.*f %s", digits, value, units[u]);
}

const char *human_bytes(char buf[HUMAN_MAX], uint64_t bytes)
{
	put_bytes(buf, bytes, 1);
	return buf;
}

const char *human_apart(char buf[HUMAN_MAX], uint64_t bytes, uint64_t other)
{
	char it[HUMAN_MAX];

	for (int digits = 1; digits <= DIGITS_MOST; digits++) {
		put_bytes(buf, bytes, digits);
		put_bytes(it, other, digits);
		if (bytes == other || strcmp(buf, it))
			return buf;
	}
	snprintf(buf, HUMAN_MAX, "%s B", human_count(it, bytes));
	return buf;
}

/* Prints a time of 100 s or more in two units. */
static void put_long(char buf[HUMAN_MAX], uint64_t s)
{
	if (s < 3600)
		snprintf(buf, HUMAN_MAX, "%u min %02u s", (unsigned)(s / 60), (unsigned)(s % 60));
	else if (s < 2 * 86400)
		snprintf(buf, HUMAN_MAX, "%u h %02u min", (unsigned)(s / 3600),
			 (unsigned)(s / 60 % 60));
	else
		snprintf(buf, HUMAN_MAX, "%" PRIu64 " days %u h", s / 86400,
			 (unsigned)(s / 3600 % 24));
}

const char *human_change(char buf[HUMAN_MAX], int64_t bytes)
{
	snprintf(buf, HUMAN_MAX, bytes ? "%c%.30s" : "0", bytes < 0 ? '-' : '+',
		 B((uint64_t)llabs(bytes)));
	return buf;
}

const char *human_seconds(char buf[HUMAN_MAX], uint64_t ns)
{
	double s = ns / 1e9;

	if (ns < 1000)
		snprintf(buf, HUMAN_MAX, "%u ns", (unsigned)ns);
	else if (s < 0.001)
		snprintf(buf, HUMAN_MAX, "%.0f us", s * 1e6);
	else if (s < 0.1)
		snprintf(buf, HUMAN_MAX, "%.1f ms", s * 1e3);
	else if (s < 100)
		snprintf(buf, HUMAN_MAX, "%.2f s", s);
	else
		put_long(buf, (uint64_t)(s + 0.5));
	return buf;
}

const char *human_share(char buf[HUMAN_MAX], uint64_t part, uint64_t all)
{
	snprintf(buf, HUMAN_MAX, "%.0f %%", all ? 100.0 * part / all : 0.0);
	return buf;
}

const char *human_count(char buf[HUMAN_MAX], uint64_t n)
{
	char digits[HUMAN_MAX];
	size_t len = snprintf(digits, sizeof(digits), "%" PRIu64, n), out = 0;

	for (size_t i = 0; i < len; i++) {
		if (i && (len - i) % 3 == 0)
			buf[out++] = ',';
		buf[out++] = digits[i];
	}
	buf[out] = 0;
	return buf;
}

const char *human_many(char buf[HUMAN_MANY], uint64_t n, const char *one)
{
	char count[HUMAN_MAX];
	size_t len = strlen(one);
	const char *end = n == 1 ? "" : len && one[len - 1] == 's' ? "es" : "s";

	snprintf(buf, HUMAN_MANY, "%s %.24s%s", human_count(count, n), one, end);
	return buf;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "chart.h"

#include "../base/human.h"
#include "../base/machine.h"

enum { EIGHTHS = 8, NO_CLASS = CATEGORIES };

void chart_screen(unsigned *columns, unsigned *rows)
{
	bool known = machine_terminal(NULL, columns, rows) && *columns && *rows;

	*columns = known ? *columns : 80;
	*rows = known ? *rows : 24;
}

bool chart_utf8(void)
{
	static const char *const names[] = { "LC_ALL", "LC_CTYPE", "LANG" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const char *value = machine_setting(names[i]);

		if (value && *value)
			return strcasestr(value, "utf-8") || strcasestr(value, "utf8");
	}
	return false;
}

void chart_colour(struct emit *out, unsigned category, bool background)
{
	uint32_t c = categories[category].colour;
	unsigned r = c >> 16, g = c >> 8 & 255, b = c & 255;
	const char *can = machine_setting("COLORTERM");

	if (!emit_colour(out))
		return;
	if (can && (!strcmp(can, "truecolor") || !strcmp(can, "24bit")))
		emit_raw(out, "\033[%u;2;%u;%u;%um", background ? 48 : 38, r, g, b);
	else /* the cube of 6 x 6 x 6 colours */
		emit_raw(out, "\033[%u;5;%um", background ? 48 : 38,
			 16 + 36 * (r * 5 / 255) + 6 * (g * 5 / 255) + b * 5 / 255);
}

void chart_colour_end(struct emit *out)
{
	if (emit_colour(out))
		emit_raw(out, "\033[0m");
}

static const char letters[] = {
#define CATEGORY(name, words, colour, letter, term, level, part, traits) letter,
#include "../classes/categories.def"
};

/* The upper end of each class, in eighths of a character from the bottom. The lowest class with any
 * bytes is always visible. */
static void stack(const struct chart *c, const uint64_t *bytes, uint64_t most,
		  unsigned tops[CATEGORIES])
{
	unsigned __int128 sum = 0, full = c->height * EIGHTHS;

	for (unsigned i = 0; i < CATEGORIES; i++) {
		sum += bytes[i];
		tops[i] = most ? (unsigned)((sum * full + most / 2) / most) : 0;
		if (sum && !tops[i])
			tops[i] = 1;
	}
}

static unsigned class_at(const unsigned tops[CATEGORIES], unsigned eighth)
{
	unsigned i = 0;

	while (i < CATEGORIES && tops[i] <= eighth)
		i++;
	return i;
}

/* The cell's lowest class as a block of that many eighths, on the colour of its highest class. */
static void block_cell(struct emit *out, const unsigned tops[CATEGORIES], unsigned from)
{
	static const char *const blocks[] = { " ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█" };
	unsigned low = class_at(tops, from), high = class_at(tops, from + EIGHTHS - 1), n = 1;

	if (low == NO_CLASS) {
		emit_raw(out, " ");
		return;
	}
	while (n < EIGHTHS && class_at(tops, from + n) == low)
		n++;
	chart_colour(out, low, false);
	if (high != NO_CLASS && high != low)
		chart_colour(out, high, true);
	emit_raw(out, "%s", blocks[n]);
	chart_colour_end(out);
}

/* The class with the largest part of the cell. */
static void letter_cell(struct emit *out, const unsigned tops[CATEGORIES], unsigned from)
{
	unsigned share[CATEGORIES + 1] = { 0 }, best = NO_CLASS;

	for (unsigned i = 0; i < EIGHTHS; i++)
		share[class_at(tops, from + i)]++;
	for (unsigned i = from && share[NO_CLASS] > EIGHTHS / 2 ? 0 : CATEGORIES; i-- > 0;)
		if (share[i] && (best == NO_CLASS || share[i] >= share[best]))
			best = i;
	if (best == NO_CLASS) {
		emit_raw(out, " ");
		return;
	}
	chart_colour(out, best, false);
	emit_raw(out, "%c", letters[best]);
	chart_colour_end(out);
}

static void print_row(const struct chart *c, struct emit *out, unsigned row, uint64_t most)
{
	const struct envelope *e = c->envelope;
	bool labelled = row + 1 == c->height || row == c->height / 2 || !row;
	char label[HUMAN_MAX] = "";

	if (labelled)
		human_bytes(label, row + 1 == c->height ? most : most / c->height * row);
	emit_raw(out, "%*s %s", CHART_MARGIN - 2, label, c->blocks ? (labelled ? "┤" : "│") : "|");
	for (size_t i = 0; i < e->count; i++) {
		unsigned tops[CATEGORIES];

		stack(c, e->buckets[i].at_max, most, tops);
		if (c->blocks && emit_colour(out))
			block_cell(out, tops, row * EIGHTHS);
		else
			letter_cell(out, tops, row * EIGHTHS);
	}
	emit_raw(out, "\n");
}

static void print_times(const struct chart *c, struct emit *out)
{
	const struct envelope *e = c->envelope;
	char left[HUMAN_MAX], middle[HUMAN_MAX], right[HUMAN_MAX];
	int half = (int)e->count / 2;
	uint64_t start = e->buckets[0].first_ns;

	emit_raw(out, "%*s%s", CHART_MARGIN - 1, "", c->blocks ? "└" : "+");
	for (size_t i = 0; i < e->count; i++)
		emit_raw(out, "%s", c->blocks ? "─" : "-");
	human_seconds(left, 0);
	human_seconds(middle, e->buckets[half].first_ns - start);
	human_seconds(right, e->buckets[e->count - 1].last_ns - start);
	if (e->count < 40)
		emit_raw(out, "\n%*s%-*s%s\n", CHART_MARGIN, "", (int)e->count - (int)strlen(right),
			 left, right);
	else
		emit_raw(out, "\n%*s%-*s%-*s%s\n", CHART_MARGIN, "", half, left,
			 (int)e->count - half - (int)strlen(right), middle, right);
}

/* The phase with the largest part of the bucket's time. */
static const struct span *span_of(const struct timeline *t, const struct envelope_bucket *b,
				  size_t *from)
{
	const struct span *best = NULL;
	uint64_t longest = 0;

	while (*from + 1 < t->model.spans.count &&
	       t->model.spans.items[*from + 1].extent.first_ns < b->first_ns)
		++*from;
	for (size_t i = *from; i < t->model.spans.count; i++) {
		const struct span *s = &t->model.spans.items[i];
		uint64_t begin = s->extent.first_ns, end = b->last_ns;

		if (begin > b->last_ns)
			break;
		if (i + 1 < t->model.spans.count && s[1].extent.first_ns < end)
			end = s[1].extent.first_ns;
		begin = begin > b->first_ns ? begin : b->first_ns;
		if (!best || end - begin > longest) {
			best = s;
			longest = end - begin;
		}
	}
	return best;
}

static void print_phases(const struct chart *c, struct emit *out, bool used[PHASES])
{
	size_t from = 0;

	emit_raw(out, "%*s", CHART_MARGIN, "phase ");
	for (size_t i = 0; i < c->envelope->count; i++) {
		const struct span *s = span_of(c->timeline, &c->envelope->buckets[i], &from);

		emit_raw(out, "%c", s ? phases[s->phase].letter : ' ');
		used[s ? s->phase : PHASE_OTHER] = true;
	}
	emit_raw(out, "\n");
}

static void print_letters(struct emit *out, const bool used[PHASES])
{
	char text[160] = "";

	for (unsigned p = 0; p < PHASES; p++)
		if (used[p])
			text_add(text, sizeof(text), "%s%c %s", text[0] ? ", " : "",
				 phases[p].letter, phases[p].text);
	emit_paragraph(out, "     phases ", "            ", text);
}

/* A step's number where it begins, if there is room for it. */
static void print_steps(const struct chart *c, struct emit *out)
{
	const struct steps *steps = &c->timeline->steps;
	size_t real = steps_number(steps), column = 0;
	char number[24];

	emit_raw(out, "%*s", CHART_MARGIN, "step ");
	for (size_t n = 1, i = 0; n <= real && i < c->envelope->count; n++) {
		uint64_t begin = steps->items[n].extent.first_ns;
		int len = snprintf(number, sizeof(number), "%zu", n);

		while (i < c->envelope->count && c->envelope->buckets[i].last_ns < begin)
			i++;
		if ((column && i <= column) || i + (size_t)len > c->envelope->count)
			continue;
		emit_raw(out, "%*s%s", (int)(i - column), "", number);
		column = i + (size_t)len;
	}
	emit_raw(out, "\n");
}

/* Legend of letters or colours, with the bytes at the peak; two in a row. */
static void print_legend(const struct chart *c, struct emit *out)
{
	const struct envelope_bucket *peak = envelope_peak(c->envelope);
	bool used[CATEGORIES] = { 0 }, colour = emit_colour(out);
	unsigned n = 0;

	for (size_t i = 0; i < c->envelope->count; i++)
		for (unsigned k = 0; k < CATEGORIES; k++)
			if (c->envelope->buckets[i].at_max[k] > 0)
				used[k] = true;
	emit_raw(out, "\n%*s", CHART_MARGIN, "at peak ");
	for (unsigned k = 0; k < CATEGORIES; k++) {
		if (!used[k])
			continue;
		if (n && n % 2 == 0)
			emit_raw(out, "\n%*s", CHART_MARGIN, "");
		chart_colour(out, k, false);
		emit_raw(out, colour && c->blocks ? "█" : "%c", letters[k]);
		chart_colour_end(out);
		emit_raw(out, n++ % 2 ? " %-21s %9s" : " %-21s %9s  ", categories[k].words,
			 B(peak->at_max[k]));
	}
	emit_raw(out, "\n");
}

void chart_print(const struct chart *c, struct emit *out)
{
	uint64_t most = envelope_peak(c->envelope)->max.bytes;
	bool used[PHASES] = { 0 };

	for (unsigned row = c->height; row-- > 0;)
		print_row(c, out, row, most);
	print_times(c, out);
	if (c->timeline->model.spans.count)
		print_phases(c, out, used);
	if (steps_number(&c->timeline->steps))
		print_steps(c, out);
	print_legend(c, out);
	if (c->timeline->model.spans.count)
		print_letters(out, used);
}

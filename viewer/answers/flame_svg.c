/* SPDX-License-Identifier: Apache-2.0 */
/* A flame graph as one SVG file. Names are text, whatever bytes they hold. */
#include <string.h>

#include "../base/emit_json.h"
#include "../base/human.h"
#include "flame.h"

enum { WIDTH = 1200, ROW = 17, TOP = 40, SIDE = 10, DEEPEST = 200 };
#define LETTER	  7.3 /* pixels */
#define NARROWEST 0.3 /* pixels; what is narrower is not drawn */

struct drawing {
	const struct flame *flame;
	FILE *out;
	unsigned deepest;
};

static const char style[] =
	"<style>\n"
	"svg { background: #fff; color: #222 }\n"
	"text { font: 12px ui-monospace, monospace; fill: #111; pointer-events: none }\n"
	".t { font-size: 15px } .b { fill: #666 }\n"
	"g.f rect { stroke: #fff; stroke-width: .5 }\n"
	"g.f:hover rect { stroke: #000; cursor: pointer }\n"
	"g.f.hit rect { fill: #e0f; } g.f.off { opacity: .35 }\n"
	"@media (prefers-color-scheme: dark) {\n"
	"svg { background: #181a1c } .t { fill: #eee } .b { fill: #aaa }\n"
	"g.f rect { stroke: #181a1c } g.f:hover rect { stroke: #fff }\n"
	"}\n"
	"</style>\n";

/* x and w of each frame stand in its data; a click makes one as wide as the picture. */
static const char script[] =
	"<script><![CDATA[\n"
	"'use strict';\n"
	"const all = [...document.querySelectorAll('g.f')], W = 1180, side = 10, letter = 7.3;\n"
	"const frames = all.map(g => ({ g, r: g.querySelector('rect'), t: "
	"g.querySelector('text'),\n"
	"  name: g.dataset.n, x: +g.dataset.x, w: +g.dataset.w, d: +g.dataset.d }));\n"
	"const info = document.getElementById('info');\n"
	"function fit(f, w) {\n"
	"  const room = Math.floor((w - 6) / letter), name = [...f.name];\n"
	"  f.t.textContent = room < 3 ? '' : name.length <= room ? f.name :\n"
	"    name.slice(0, room - 2).join('') + '..';\n"
	"}\n"
	"function zoom(to) {\n"
	"  for (const f of frames) {\n"
	"    const out = f.x + f.w <= to.x + 1e-9 || f.x >= to.x + to.w - 1e-9;\n"
	"    const around = f.d < to.d && !out;\n"
	"    const x = around ? 0 : (f.x - to.x) / to.w * W, w = around ? W : f.w / to.w * W;\n"
	"    f.g.style.display = out || w < .3 ? 'none' : '';\n"
	"    f.g.classList.toggle('off', around);\n"
	"    f.r.setAttribute('x', side + x); f.r.setAttribute('width', Math.max(w, 0));\n"
	"    f.t.setAttribute('x', side + x + 3); fit(f, w);\n"
	"  }\n"
	"}\n"
	"function search(what) {\n"
	"  let n = 0;\n"
	"  for (const f of frames) {\n"
	"    const hit = what && f.name.toLowerCase().includes(what.toLowerCase());\n"
	"    f.g.classList.toggle('hit', !!hit); n += hit ? 1 : 0;\n"
	"  }\n"
	"  info.textContent = what ? n + ' frames hold \"' + what + '\"' : '';\n"
	"}\n"
	"for (const f of frames) {\n"
	"  f.g.addEventListener('click', () => zoom(f));\n"
	"  f.g.addEventListener('mouseenter', () => {\n"
	"    info.textContent = f.g.querySelector('title').textContent; });\n"
	"}\n"
	"document.addEventListener('keydown', e => {\n"
	"  if (e.key === 'Escape') { search(''); zoom(frames[0]); }\n"
	"  if (e.key === '/') { e.preventDefault(); search(prompt('Search frames') || ''); }\n"
	"});\n"
	"]]></script>\n";

/* At most `most` characters; what cannot be shown, or stand in XML, is a question mark. */
static void put_svg_text(FILE *f, const char *s, size_t most)
{
	size_t len = strlen(s), n;

	for (; len && most; s += n, len -= n, most--) {
		n = emit_plain_char(s, len);
		if (!n || (n == 3 && !memcmp(s, "\xef\xbf", 2) && (unsigned char)s[2] > 0xbd)) {
			n = n ? n : 1;
			fputc('?', f);
		} else if (n == 1 && strchr("<>&\"", *s)) {
			fprintf(f, "&#%d;", *s);
		} else {
			fwrite(s, 1, n, f);
		}
	}
}

static uint32_t colour_hash(const char *s)
{
	uint32_t h = 2166136261u;

	for (; *s; s++)
		h = (h ^ (unsigned char)*s) * 16777619u;
	return h;
}

/* By class where all inside is of one and classes are shown; else by kind: a colour, and by how
 * much each channel may vary with the name. */
static uint32_t colour(const struct flame *f, const struct flame_node *n, bool classes)
{
	static const uint32_t kinds[][2] = { [FLAME_ALL] = { 0xc8c8c8, 0 },
					     [FLAME_PYTHON] = { 0x5fa8d3, 0x101820 },
					     [FLAME_NATIVE] = { 0xe8a25c, 0x101810 },
					     [FLAME_MODULE] = { 0x6fbf73, 0x101810 },
					     [FLAME_CLASS] = { 0xbab0ac, 0 } };
	uint32_t vary = colour_hash(n->name), out = 0;

	if (classes && n != f->nodes && n->category < CATEGORIES)
		return category_colour(n->category);
	for (int shift = 0; shift < 24; shift += 8, vary >>= 5)
		out |= ((kinds[n->kind][0] >> shift & 255) +
			vary % ((kinds[n->kind][1] >> shift & 255) + 1))
		       << shift;
	return out;
}

static void frame(struct drawing *d, uint32_t at, double x, unsigned depth, bool classes)
{
	const struct flame_node *n = &d->flame->nodes[at];
	double all = (double)d->flame->nodes[0].bytes, scale = (WIDTH - 2 * SIDE) / all;
	double w = n->bytes * scale, px = SIDE + x * scale;
	unsigned y = TOP + (d->deepest - depth) * ROW;
	char bytes[HUMAN_MAX], share[HUMAN_MAX], blocks[HUMAN_MANY];

	fprintf(d->out, "<g class=\"f\" data-x=\"%.9g\" data-w=\"%.9g\" data-d=\"%u\" data-n=\"",
		x / all, n->bytes / all, depth);
	put_svg_text(d->out, n->name, SIZE_MAX);
	fputs("\"><title>", d->out);
	put_svg_text(d->out, n->name, SIZE_MAX);
	fprintf(d->out, ": %s, %s, %s</title>", human_bytes(bytes, n->bytes),
		human_share(share, n->bytes, d->flame->nodes[0].bytes),
		human_many(blocks, n->blocks, "block"));
	fprintf(d->out, "<rect x=\"%.2f\" y=\"%u\" width=\"%.2f\" height=\"%u\" fill=\"#%06x\"/>",
		px, y, w, ROW - 1, colour(d->flame, n, classes));
	fprintf(d->out, "<text x=\"%.2f\" y=\"%u\">", px + 3, y + 12);
	if (w > 3 * LETTER + 6)
		put_svg_text(d->out, n->name, (size_t)((w - 6) / LETTER));
	fputs("</text></g>\n", d->out);
}

static bool is_drawn(const struct flame *f, uint32_t at, unsigned depth)
{
	double w = (double)f->nodes[at].bytes / f->nodes[0].bytes * (WIDTH - 2 * SIDE);

	return w >= NARROWEST && depth <= DEEPEST;
}

static unsigned deepest(const struct flame *f, uint32_t at, unsigned depth)
{
	unsigned most = depth, one;

	for (uint32_t i = f->nodes[at].first; i; i = f->nodes[i].next) {
		one = is_drawn(f, i, depth + 1) ? deepest(f, i, depth + 1) : depth;
		most = one > most ? one : most;
	}
	return most;
}

static void draw(struct drawing *d, uint32_t at, double x, unsigned depth, bool classes)
{
	frame(d, at, x, depth, classes);
	for (uint32_t i = d->flame->nodes[at].first; i; i = d->flame->nodes[i].next) {
		if (is_drawn(d->flame, i, depth + 1))
			draw(d, i, x, depth + 1, classes);
		x += (double)d->flame->nodes[i].bytes;
	}
}

void flame_svg(const struct flame *f, const char *title, FILE *out)
{
	struct drawing d = { f, out, 0 };
	const struct flame_node *first = &f->nodes[f->nodes[0].first];
	unsigned height;

	if (f->nodes[0].bytes)
		d.deepest = deepest(f, 0, 0);
	height = TOP + (d.deepest + 1) * ROW + 30;
	fprintf(out,
		FLAME_HEAD " xmlns=\"http://www.w3.org/2000/svg\" width=\"%u\" height=\"%u\" "
			   "viewBox=\"0 0 %u %u\">\n",
		WIDTH, height, WIDTH, height);
	fputs(style, out);
	fprintf(out, "<text class=\"t\" x=\"%u\" y=\"25\">", SIDE);
	put_svg_text(out, title, 150);
	fputs("</text>\n", out);
	if (f->nodes[0].bytes)
		draw(&d, 0, 0, 0, first->kind == FLAME_CLASS);
	fprintf(out,
		"<text id=\"info\" class=\"b\" x=\"%u\" y=\"%u\">click: enlarge; Esc: all; /: "
		"search</text>\n",
		SIDE, height - 10);
	fputs(script, out);
	fputs("</svg>\n", out);
}

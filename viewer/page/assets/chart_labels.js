/* SPDX-License-Identifier: Apache-2.0 */
/* The names in a chart. They are drawn after all lines, each on a background, so that no line crosses one. A name offers
 * several places. It takes the first that is free of lines and other names, else the first that is free of other names. */

const separate = (a, b) => a.x >= b.x + b.w || b.x >= a.x + a.w || a.y >= b.y + b.h || b.y >= a.y + a.h;

class Labels {
  constructor(g, room) {
    this.g = g;
    this.room = room; /* { left, top, width, height }: names stay inside */
    this.names = [];
    this.taken = [];
    this.lines = []; /* one function per line: whether it crosses a rectangle */
  }
  /* A mark on which no name may lie. */
  mark(x, y, w, h) { this.taken.push({ x, y, w, h }); }
  /* A horizontal or vertical line. */
  line(x, y, w, h) { this.lines.push((r) => !separate(r, { x, y, w, h })); }
  /* A line from one point to another. */
  segment([x1, y1], [x2, y2]) {
    this.lines.push((r) => {
      const from = Math.max(Math.min(x1, x2), r.x), to = Math.min(Math.max(x1, x2), r.x + r.w), y = (x) => (x1 === x2 ? y1 : y1 + (x - x1) / (x2 - x1) * (y2 - y1));
      return from <= to && Math.max(y(from), y(to)) >= r.y && Math.min(y(from), y(to)) <= r.y + r.h;
    });
  }
  /* A line that drawLine draws: a level for each column. */
  stairs(values, box, top) {
    const n = box.width / values.length, y = (v) => box.top + box.height - v / top * box.height;
    this.lines.push((r) => {
      const from = Math.max(0, Math.floor((r.x - box.left) / n) - 1), part = Array.from(values.slice(from, Math.max(0, Math.ceil((r.x + r.w - box.left) / n)) + 1), y).filter((v) => !Number.isNaN(v));
      return part.length > 0 && Math.max(...part) >= r.y && Math.min(...part) <= r.y + r.h;
    });
  }
  /* places: [left, middle]; style: { px, weight, ink, plate, room: most pixels, must: draw even on another name }. */
  add(text, places, style) { this.names.push({ text, places, style }); }
  draw() {
    const { g } = this;
    g.textBaseline = 'middle';
    g.textAlign = 'left';
    for (const { text, places, style } of this.names) {
      g.font = FONT(style.px, style.weight);
      const words = clip(g, text, Math.min(style.room || Infinity, this.room.width - 6)), w = g.measureText(words).width + 6, h = style.px + 5;
      const all = words === text || words.length > 1 ? places.map(([x, y]) => this.inside({ x: x - 3, y: y - h / 2, w, h })) : [];
      const free = all.filter((r) => this.taken.every((t) => separate(r, t)));
      const r = free.find((f) => !this.lines.some((crosses) => crosses(f))) || free[0] || (style.must && all[0]);
      if (!r) continue;
      this.taken.push(r);
      g.fillStyle = css(style.plate || '--paper');
      g.fillRect(r.x, r.y, r.w, r.h);
      g.fillStyle = css(style.ink);
      g.fillText(words, r.x + 3, r.y + h / 2 + 0.5);
    }
  }
  inside(r) {
    const { left, top, width, height } = this.room;
    return { ...r, x: Math.max(left, Math.min(r.x, left + width - r.w)), y: Math.max(top, Math.min(r.y, top + height - r.h)) };
  }
}

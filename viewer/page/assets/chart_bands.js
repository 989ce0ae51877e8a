/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks over time: each is a band on those below it, as in the column's highest moment; those without a band are a grey
 * area. By line and by module, bands of one name are adjacent and have one colour. Ranks are lines. */

const BANDS = 400;
const BAND_NAMES = { block: (b) => originText(b.origin), line: (b) => originText(b.origin), module: (b) => moduleOf(b.origin) };

/* The innermost module whose forward pass allocated the block. */
function moduleOf(o) {
  const all = modulesOf(framesOf(app.doc, o.node).filter((f) => f.bits & FRAME.python));
  return all.length > 1 ? all[all.length - 2].fn : 'outside of modules';
}

class Bands {
  constructor() { this.rows = []; }
  /* Computed again only if the view has changed. */
  find(chart, by, columns) {
    const t = chart.track, seqs = Array.from(columns.best, (i) => (i < 0 ? -1 : t.points[i].seq)), at = (seq) => countFirst(seqs, (s) => s < seq), made = [t.index, by, chart.axis, seqs.length, ...chart.view].join();
    if (made === this.made) return;
    this.made = made;
    const weight = (r) => r.b.size * (r.to - r.from), names = new Map();
    this.rows = livesOf(app.doc, t).map((b) => ({ b, from: at(b.seq), to: b.endSeq ? at(b.endSeq) : seqs.length, pieces: [], pale: b.pale.map((x) => x.map(at)) }))
      .filter((r) => r.to > r.from).sort((p, q) => weight(q) - weight(p)).slice(0, BANDS);
    for (const r of this.rows) names.set(r.name = BAND_NAMES[by](r.b), (names.get(r.name) || 0) + weight(r));
    const order = new Map([...names].sort((p, q) => q[1] - p[1]).map(([name], i) => [name, i]));
    this.rows.sort((p, q) => (by === 'block' ? 0 : order.get(p.name) - order.get(q.name)) || p.b.seq - q.b.seq);
    for (const r of this.rows) r.colour = 'hsl(' + Math.round((by === 'block' ? r.b.id : order.get(r.name)) * 137.508 % 360) + ' 42% 56%)';
    this.top = new Float64Array(seqs.length);
    this.rows.forEach((r) => this.lay(r));
  }
  /* Puts a block on the bands so far, in pieces of equal height. */
  lay(r) {
    for (let c = r.from, end; c < r.to; c = end) {
      for (end = c + 1; end < r.to && this.top[end] === this.top[c];) end++;
      r.pieces.push([c, end, this.top[c]]);
      this.top.fill(this.top[c] + r.b.size, c, end);
    }
  }
  draw(g, chart, by, columns, box, most) {
    this.find(chart, by, columns);
    const n = box.width / this.top.length, y = (v) => box.top + box.height - v / most * box.height;
    const fill = (a, b, low, high, edge) => g.fillRect(box.left + a * n, y(high), (b - a) * n, Math.max(0.4, y(low) - y(high) - edge));
    for (const r of this.rows) {
      const part = (from, to) => { for (const [a, b, low] of r.pieces) if (a < to && from < b) fill(Math.max(a, from), Math.min(b, to), low, low + r.b.size, r.b.size / most * box.height > 3 ? 0.6 : 0); };
      g.fillStyle = r.colour;
      part(r.from, r.to);
      g.fillStyle = css('--sheet');
      g.globalAlpha = 0.65;
      for (const [from, to] of r.pale) part(from, to);
      g.globalAlpha = 1;
    }
    g.fillStyle = css('--hole');
    this.top.forEach((v, c) => { const all = columns.best[c] < 0 ? 0 : chart.track.points[columns.best[c]].bytes; if (all > v) fill(c, c + 1, v, all, 0); });
  }
  /* The band at a share of the width and a height in bytes. */
  at(share, bytes) {
    const c = Math.floor(share * this.top.length);
    return this.rows.find((r) => r.pieces.some(([a, b, low]) => c >= a && c < b && bytes >= low && bytes < low + r.b.size)) || null;
  }
}

const rankColour = (t) => 'hsl(' + Math.round(t.index * 137.508 % 360) + ' 58% 48%)';

/* A line per rank, of its highest point in each column, up to the rank's last event. */
class RankLines {
  find(chart, width) {
    const made = [chart.axis, width, ...chart.view].join();
    if (made === this.made) return this.most;
    this.made = made;
    this.rows = app.doc.tracks.map((t) => {
      const own = Object.assign(new Chart(t), { axis: chart.axis, view: chart.view }), end = (own.all[1] - chart.view[0]) / (chart.view[1] - chart.view[0]) * width;
      return { t, values: Float64Array.from(own.columns(width, stackOrder()).best, (i, c) => (i < 0 ? 0 : c > end ? NaN : t.points[i].bytes)) };
    });
    return this.most = this.rows.reduce((most, r) => r.values.reduce((a, b) => (b > a ? b : a), most), 1);
  }
  draw(g, box, most, labels) {
    for (const r of this.rows) drawLine(g, r.values, box, most, rankColour(r.t), [], labels);
    drawLine(g, this.rows[app.track.index].values, { ...box, top: box.top - 1 }, most, rankColour(app.track), []);
  }
  /* The nearest line at a share of the width and a height in bytes. */
  at(share, bytes) {
    const far = (r) => Math.abs(r.values[Math.floor(share * r.values.length)] - bytes), near = this.rows.filter((r) => far(r) < this.most / 20);
    return near.length ? near.reduce((a, b) => (far(b) < far(a) ? b : a)) : null;
  }
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Drawing of memory over time: stacked areas of classes, lines, bands and marks. A column of the screen shows the
 * highest point that falls into it, so that no spike is lost; what lies between two points is a level line. */

class Chart {
  constructor(track) {
    this.track = track;
    this.axis = this.bunched() ? 'events' : 'time';
    this.reset();
  }
  /* Most of what happened lies within a small part of the time. */
  bunched() {
    const p = this.track.points, n = p.length, most = Math.floor(n * 0.75), limit = 0.35 * (this.track.last_ns - this.track.first_ns);
    return n > 20 && p.some((q, i) => i + most < n && p[i + most].ns - q.ns <= limit);
  }
  /* Where on the axis an event is. */
  place(seq, ns) {
    return this.axis === 'time' ? ns - this.track.first_ns : seq;
  }
  x(p) {
    return this.place(p.seq, p.ns);
  }
  get all() {
    const t = this.track;
    return this.axis === 'time' ? [0, Math.max(1, t.last_ns - t.first_ns)] : [0, Math.max(1, t.last_seq)];
  }
  reset() {
    this.view = this.all;
  }
  isWhole() {
    const [a, b] = this.all;
    return this.view[0] <= a && this.view[1] >= b;
  }
  setView(from, to) {
    const [a, b] = this.all, least = this.axis === 'time' ? Math.min(1000, b) : Math.min(10, b);
    let span = Math.min(b - a, Math.max(least, to - from));
    from = Math.max(a, Math.min(from, b - span));
    this.view = [from, from + span];
  }
  zoom(factor, center) {
    const [a, b] = this.view, at = center === undefined ? (a + b) / 2 : center;
    this.setView(at - (at - a) * factor, at + (b - at) * factor);
  }
  pan(share) {
    const [a, b] = this.view, d = (b - a) * share;
    this.setView(a + d, b + d);
  }
  /* Keeps the same events in view. */
  setAxis(axis) {
    const points = this.track.points, inView = points.filter((p) => this.x(p) >= this.view[0] && this.x(p) <= this.view[1]);
    const whole = this.isWhole();
    this.axis = axis;
    if (whole || inView.length < 2) this.reset();
    else this.setView(this.x(inView[0]), this.x(inView[inView.length - 1]));
  }
  /* For each column of the screen the point with the highest sum of what is shown, -1 before the first, and the most of
   * the two lines; of a single class also what it reached between points. */
  columns(width, shown) {
    const points = this.track.points, [from, to] = this.view, scale = (to - from) / width, kinds = app.doc.classes.length;
    const out = { best: new Int32Array(width), reserved: new Float64Array(width), used: new Float64Array(width), only: shown.length === 1 ? new Float64Array(width) : null };
    const sum = (p) => { let s = 0; for (const k of shown) s += p.classes[k]; return s; };
    const note = (c, p, most) => {
      out.reserved[c] = Math.max(out.reserved[c], p.reserved, most ? most[kinds] : 0);
      out.used[c] = Math.max(out.used[c], p.used, most ? most[kinds + 1] : 0);
      if (out.only) out.only[c] = Math.max(out.only[c], p.classes[shown[0]], most ? most[shown[0]] : 0);
    };
    let at = this.before(from), next = at + 1;
    for (let c = 0; c < width; c++) {
      const end = from + (c + 1) * scale;
      let best = at, most = at < 0 ? -1 : sum(points[at]);
      if (at >= 0) note(c, points[at], null);
      for (; next < points.length && this.x(points[next]) < end; next++) {
        const s = sum(points[next]);
        note(c, points[next], points[next].most);
        if (s > most) { best = next; most = s; }
        at = next;
      }
      out.best[c] = best;
    }
    return out;
  }
  /* The last point at or before x, -1 if there is none. */
  before(x) {
    const points = this.track.points;
    let low = 0, high = points.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.x(points[middle]) <= x) low = middle + 1;
      else high = middle;
    }
    return low - 1;
  }
}

function niceStep(span, count) {
  const raw = span / count, power = 10 ** Math.floor(Math.log10(raw));
  return [1, 2, 5, 10].map((n) => n * power).find((n) => n >= raw);
}

/* Round numbers of the unit that the whole axis is read in. */
function byteTicks(most) {
  const unit = 1024 ** Math.min(5, Math.max(0, Math.floor(Math.log(Math.max(1, most)) / Math.log(1024))));
  const step = Math.max(1 / unit, niceStep(most / unit, 4)), ticks = [];
  for (let v = 0; v * unit <= most; v += step) ticks.push(v * unit);
  return ticks;
}

function tickText(bytes, most) {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];
  const u = Math.min(5, Math.max(0, Math.floor(Math.log(Math.max(1, most)) / Math.log(1024))));
  const v = bytes / 1024 ** u;
  return v === 0 ? '0' : Number(v.toPrecision(3)) + ' ' + units[u];
}

/* One polygon a class, from the bottom up. */
function drawStack(g, chart, shown, columns, box, top) {
  const points = chart.track.points, width = columns.best.length, base = new Float64Array(width), n = box.width / width;
  const y = (bytes) => box.top + box.height - bytes / top * box.height;
  for (const k of shown) {
    g.beginPath();
    for (let c = 0; c < width; c++) {
      const v = y(base[c]);
      g.lineTo(box.left + c * n, v);
      g.lineTo(box.left + (c + 1) * n, v);
    }
    for (let c = width - 1; c >= 0; c--) {
      if (columns.best[c] >= 0) base[c] += columns.only ? columns.only[c] : points[columns.best[c]].classes[k];
      const v = y(base[c]);
      g.lineTo(box.left + (c + 1) * n, v);
      g.lineTo(box.left + c * n, v);
    }
    g.closePath();
    g.fillStyle = colourOf(k);
    g.fill();
  }
}

function drawLine(g, values, box, top, style, dash) {
  const n = box.width / values.length;
  let before = null;
  g.beginPath();
  values.forEach((value, c) => {
    const v = box.top + box.height - value / top * box.height, x = box.left + c * n;
    if (before === null) g.moveTo(x, v);
    else if (before !== v) { g.lineTo(x, before); g.lineTo(x, v); }
    g.lineTo(x + n, v);
    before = v;
  });
  g.strokeStyle = style;
  g.lineWidth = 1.25;
  g.setLineDash(dash);
  g.stroke();
  g.setLineDash([]);
}

const PHASE_COLOURS = ['--phase-setup', '--phase-forward', '--phase-backward', '--phase-other', '--phase-optimizer', '--phase-zero', '--phase-evaluation'];

/* The strip of phases; many in one column are one colour. */
function drawPhases(g, chart, box, doc) {
  const [from, to] = chart.view, scale = box.width / (to - from);
  let drawn = -1;
  g.font = FONT(10.5);
  g.textBaseline = 'middle';
  for (const span of chart.track.spans) {
    const a = chart.place(span.seq, span.ns), b = chart.place(span.lastSeq, span.lastNs);
    const x = Math.max(0, (a - from) * scale), end = Math.min(box.width, (b - from) * scale);
    if (end < 0 || x > box.width || end < drawn + 0.25) continue;
    drawn = Math.max(end, x + 0.5);
    g.fillStyle = css(PHASE_COLOURS[span.phase]);
    g.fillRect(box.left + x, box.top, Math.max(0.5, end - x), box.height);
    if (end - x < 34) continue;
    g.fillStyle = css('--ink-2');
    g.fillText(clip(g, doc.phases[span.phase], end - x - 8), box.left + x + 4, box.top + box.height / 2 + 0.5);
  }
}

function drawSteps(g, chart, box, below) {
  const [from, to] = chart.view, scale = box.width / (to - from), steps = chart.track.steps.items;
  let label = -1e9, line = -1e9;
  g.font = FONT(10.5);
  g.textBaseline = 'middle';
  g.fillStyle = css('--ink-3');
  for (const s of steps) {
    if (s.kind === 'before') continue;
    const x = (chart.place(s.firstSeq, s.firstNs) - from) * scale;
    if (x < 0 || x > box.width) continue;
    const text = s.kind === 'after' ? 'after' : (label < -1e8 ? 'step ' : '') + s.number;
    if (x - line < 12) continue;
    line = x;
    g.globalAlpha = 0.35;
    g.fillRect(box.left + x, box.top, 0.5, box.height);
    g.globalAlpha = 1;
    if (x - label < 30 || x + 4 + g.measureText(text).width > box.width) continue;
    g.fillText(text, box.left + x + 4, below);
    label = x + g.measureText(text).width;
  }
}

function drawMarks(g, chart, box) {
  const [from, to] = chart.view, scale = box.width / (to - from);
  const all = chart.track.marks.map((m) => ({ m, x: box.left + (chart.place(m.seq, m.time_ns) - from) * scale }))
    .filter(({ x }) => x >= box.left - 1 && x <= box.left + box.width + 1);
  drawRanges(g, all.filter(({ m }) => m.kind === 'range'), box);
  for (const { m, x } of all) {
    if (m.kind === 'range') continue;
    g.fillStyle = css(m.kind === 'oom' ? '--alarm' : '--warning');
    if (m.kind === 'oom') g.fillRect(x - 0.75, box.top, 1.5, box.height);
    g.beginPath();
    g.moveTo(x - 5, box.top - 9);
    g.lineTo(x + 5, box.top - 9);
    g.lineTo(x, box.top - 1);
    g.fill();
  }
}

/* The user's ranges: a tick each, and its name where the next one leaves room for it. */
function drawRanges(g, ranges, box) {
  g.fillStyle = css('--ink-3');
  g.font = FONT(10.5);
  g.textBaseline = 'alphabetic';
  ranges.forEach(({ m, x }, i) => {
    const room = (i + 1 < ranges.length ? ranges[i + 1].x : box.left + box.width) - x - 8;
    g.fillRect(x, box.top - 6, 0.75, 6);
    if (room > 30) g.fillText(clip(g, m.text, Math.min(room, 160)), x + 3, box.top - 3);
  });
}

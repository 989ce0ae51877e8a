/* SPDX-License-Identifier: Apache-2.0 */
/* Draws memory over time: stacked areas of classes, lines, bands and marks. A column of the screen is solid up to its lowest
 * point and pale up to its highest, so that no spike is lost. Between two points the curve is level. */

const SPIKE = 3; /* least width of a spike, in pixels */

const sumOf = (q, kinds) => kinds.reduce((s, k) => s + q.classes[k], 0);

class Chart {
  constructor(track) {
    this.track = track;
    this.pale = false; /* draw only bytes that are not in use */
    this.axis = this.usual = this.bunched() ? 'events' : 'time';
    this.reset();
  }
  /* Whether 3/4 of the points lie within 35 % of the time. */
  bunched() {
    const p = this.track.points.filter((q) => !q.between), n = p.length, most = Math.floor(n * 0.75), limit = 0.35 * (this.track.last_ns - this.track.first_ns);
    return n > 20 && p.some((q, i) => i + most < n && p[i + most].ns - q.ns <= limit);
  }
  bytes(q, k) { return !this.pale ? q.classes[k] : q.pale ? q.pale[k] : 0; }
  sum(q, kinds) { return kinds.reduce((s, k) => s + this.bytes(q, k), 0); }
  /* An event's position on the axis. */
  place(seq, ns) { return this.axis === 'time' ? ns - this.track.first_ns : seq; }
  x(p) { return this.place(p.seq, p.ns); }
  get all() {
    const t = this.track;
    return this.axis === 'time' ? [0, Math.max(1, t.last_ns - t.first_ns)] : [0, Math.max(1, t.last_seq)];
  }
  reset() { this.view = this.all; }
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
  /* Returns for each column of the screen the points with the highest and the lowest sum of the shown classes (-1 before the
   * first point), the maximum of the two lines, and for a single class also its maximum between points. */
  columns(width, shown, ratio = 1) {
    const points = this.track.points, [from, to] = this.view, scale = (to - from) / width, kinds = app.doc.classes.length;
    const out = { best: new Int32Array(width), low: new Int32Array(width), reserved: new Float64Array(width), used: new Float64Array(width), only: shown.length === 1 ? new Float64Array(width) : null };
    const note = (c, p, most) => {
      out.reserved[c] = Math.max(out.reserved[c], p.reserved, most ? most[kinds] : 0);
      out.used[c] = Math.max(out.used[c], p.used, most ? most[kinds + 1] : 0);
      if (out.only) out.only[c] = Math.max(out.only[c], this.bytes(p, shown[0]), most && !this.pale ? most[shown[0]] : 0);
    };
    let at = this.before(from), next = at + 1;
    for (let c = 0; c < width; c++) {
      const end = from + (c + 1) * scale;
      let best = at, low = at, most = at < 0 ? -1 : this.sum(points[at], shown), least = most;
      if (at >= 0) note(c, points[at], null);
      for (; next < points.length && this.x(points[next]) < end; next++) {
        const s = this.sum(points[next], shown);
        note(c, points[next], points[next].most);
        if (s > most) { best = next; most = s; }
        if (s < least) { low = next; least = s; }
        at = next;
      }
      out.best[c] = best;
      out.low[c] = low;
    }
    widen(out, Float64Array.from(out.best, (i, c) => (out.only ? out.only[c] : i < 0 ? 0 : this.sum(points[i], shown))), Math.round(SPIKE * ratio));
    return out;
  }
  /* The last point at or before x, -1 if there is none. */
  before(x) { return countFirst(this.track.points, (p) => this.x(p) <= x) - 1; }
}

/* Widens spikes that are narrower than `least` columns. */
function widen(out, high, least) {
  const { best, reserved, used, only } = out, lines = [reserved, used, only].filter(Boolean), drawn = high.slice(), own = best.slice();
  for (let c = 0, end; c < high.length; c = end) {
    for (end = c + 1; high[end] === high[c];) end++;
    if (end - c >= least || high[c - 1] >= high[c] || high[end] >= high[c]) continue;
    const from = Math.max(0, Math.min(high.length - least, (c + end - least) >> 1));
    for (let i = from; i < from + least && i < high.length; i++) {
      if (drawn[i] > high[c]) continue;
      drawn[i] = high[c];
      best[i] = own[c];
      for (const line of lines) line[i] = Math.max(line[i], line[c]);
    }
  }
}

function niceStep(span, count) {
  const raw = span / count, power = 10 ** Math.floor(Math.log10(raw));
  return [1, 2, 5, 10].map((n) => n * power).find((n) => n >= raw);
}

/* Ticks at round numbers of the axis's unit. */
function byteTicks(most, count) {
  const unit = 1024 ** Math.min(5, Math.max(0, Math.floor(Math.log(Math.max(1, most)) / Math.log(1024))));
  const step = Math.max(1 / unit, niceStep(most / unit, count)), ticks = [];
  for (let v = 0; v * unit <= most; v += step) ticks.push(v * unit);
  return ticks;
}

function tickText(bytes, most) {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];
  const u = Math.min(5, Math.max(0, Math.floor(Math.log(Math.max(1, most)) / Math.log(1024))));
  const v = bytes / 1024 ** u;
  return v === 0 ? '0' : Number(v.toPrecision(3)) + ' ' + units[u];
}

/* split: bytes that are not in use are paler than the rest of their class, and above it. */
function drawStack(g, chart, shown, columns, box, top, split) {
  const alpha = g.globalAlpha, points = chart.track.points, none = () => 0;
  const of = (rows, bytes) => (c, k) => (rows[c] < 0 ? 0 : bytes(points[rows[c]], k, c));
  const all = (q, k) => chart.bytes(q, k), high = columns.only ? (q, k, c) => columns.only[c] : all, pale = split ? of : () => none;
  const unused = (limit) => (q, k, c) => Math.min(q.pale ? q.pale[k] : 0, limit(q, k, c));
  g.globalAlpha = alpha * 0.5;
  drawLayers(g, shown, columns, box, top, of(columns.best, high), pale(columns.best, unused(high)));
  g.globalAlpha = alpha;
  drawLayers(g, shown, columns, box, top, of(columns.low, all), pale(columns.low, unused(all)));
}

/* Draws two polygons for each class, from the bottom up: the bytes in use, and those not in use, if there are any. */
function drawLayers(g, shown, columns, box, top, bytes, unused) {
  const width = columns.best.length, base = new Float64Array(width), n = box.width / width;
  const y = (v) => box.top + box.height - v / top * box.height;
  const layer = (colour, height) => {
    g.beginPath();
    for (let c = 0; c < width; c++) {
      const v = y(base[c]);
      g.lineTo(box.left + c * n, v);
      g.lineTo(box.left + (c + 1) * n, v);
    }
    for (let c = width - 1; c >= 0; c--) {
      base[c] += height[c];
      const v = y(base[c]);
      g.lineTo(box.left + (c + 1) * n, v);
      g.lineTo(box.left + c * n, v);
    }
    g.closePath();
    g.fillStyle = colour;
    g.fill();
  };
  for (const k of shown) {
    const pale = base.map((_, c) => unused(c, k));
    layer(colourOf(k), base.map((_, c) => bytes(c, k) - pale[c]));
    if (pale.some((v) => v)) layer(paleOf(k), pale);
  }
}

/* A class's colour, mixed with 65 % of the background. */
function paleOf(k) {
  const parts = (colour) => [1, 3, 5].map((i) => parseInt(colour.slice(i, i + 2), 16)), sheet = parts(css('--sheet'));
  return 'rgb(' + parts(colourOf(k)).map((v, i) => Math.round(0.35 * v + 0.65 * sheet[i])).join() + ')';
}

function drawLine(g, values, box, top, style, dash, labels) {
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
  if (labels) labels.stairs(values, box, top);
}

const PHASE_COLOURS = ['--phase-setup', '--phase-forward', '--phase-backward', '--phase-other', '--phase-optimizer', '--phase-zero', '--phase-evaluation'];

/* Draws the strip of phases. Of many phases in one column only one is drawn. */
function drawPhases(g, chart, box, doc, labels) {
  const [from, to] = chart.view, scale = box.width / (to - from);
  let drawn = -1;
  for (const span of chart.track.spans) {
    const a = chart.place(span.seq, span.ns), b = chart.place(span.lastSeq, span.lastNs);
    const x = Math.max(0, (a - from) * scale), end = Math.min(box.width, (b - from) * scale);
    if (end < 0 || x > box.width || end < drawn + 0.25) continue;
    drawn = Math.max(end, x + 0.5);
    g.fillStyle = css(PHASE_COLOURS[span.phase]);
    g.fillRect(box.left + x, box.top, Math.max(0.5, end - x), box.height);
    if (end - x >= 34) labels.add(doc.phases[span.phase], [[box.left + x + 4, box.top + box.height / 2]], { px: 10.5, ink: '--ink-2', plate: PHASE_COLOURS[span.phase], room: end - x - 8 });
  }
}

function drawSteps(g, chart, box, below, labels) {
  const [from, to] = chart.view, scale = box.width / (to - from), steps = chart.track.steps.items;
  let first = true, line = -1e9;
  for (const s of steps) {
    if (s.kind === 'before') continue;
    const x = (chart.place(s.firstSeq, s.firstNs) - from) * scale;
    if (x < 0 || x > box.width) continue;
    if (x - line < 12) continue;
    line = x;
    g.fillStyle = css('--ink-3');
    g.globalAlpha = 0.35;
    g.fillRect(box.left + x, box.top, 0.5, box.height);
    g.globalAlpha = 1;
    labels.line(box.left + x, box.top, 0.5, box.height);
    labels.add(s.kind === 'after' ? 'after' : (first ? 'step ' : '') + s.number, [[box.left + x + 4, below]], { px: 10.5, ink: '--ink-3' });
    first = false;
  }
}

/* Draws an arrow down to (x, y), so that even a spike stays visible. */
function drawTip(g, x, y, style, labels) {
  labels.mark(x - 5, y - 9, 10, 9);
  g.fillStyle = css(style);
  g.beginPath();
  g.moveTo(x - 5, y - 9);
  g.lineTo(x + 5, y - 9);
  g.lineTo(x, y - 1);
  g.fill();
}

function drawMarks(g, chart, box, labels) {
  const [from, to] = chart.view, scale = box.width / (to - from);
  const all = chart.track.marks.map((m) => ({ m, x: box.left + (chart.place(m.seq, m.time_ns) - from) * scale }))
    .filter(({ x }) => x >= box.left - 1 && x <= box.left + box.width + 1);
  drawRanges(g, all.filter(({ m }) => m.kind === 'range'), box, labels);
  for (const { m, x } of all) {
    if (m.kind === 'range') continue;
    drawTip(g, x, box.top, m.kind === 'oom' ? '--alarm' : '--warning', labels);
    if (m.kind !== 'oom') continue;
    g.globalAlpha = 0.6;
    g.fillRect(x - 0.75, box.top, 1.5, box.height);
    g.globalAlpha = 1;
    labels.line(x - 0.75, box.top, 1.5, box.height);
  }
}

/* Draws the user's ranges: a tick for each, and its name if there is room before the next one. */
function drawRanges(g, ranges, box, labels) {
  g.fillStyle = css('--ink-3');
  ranges.forEach(({ m, x }, i) => {
    const room = (i + 1 < ranges.length ? ranges[i + 1].x : box.left + box.width) - x - 8;
    g.fillRect(x, box.top - 6, 0.75, 6);
    if (room > 30) labels.add(m.text, [[x + 4, box.top - 7]], { px: 10.5, ink: '--ink-3', room: Math.min(room, 160) });
  });
}

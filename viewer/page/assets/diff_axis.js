/* SPDX-License-Identifier: Apache-2.0 */
/* One axis for two runs. By step: a step, or each of its phases if both runs have the same, is as long as the longer of the
 * two, in events, so that corresponding moments align. By time and by event each run starts at its own beginning. */

/* The stretches of one step, by number of event: [{ phase, from, to }]. spans: those that begin in the step. */
function phasesOf(spans, from, to) {
  const out = [];
  for (const s of spans) {
    if (out.length && out[out.length - 1].phase === s.phase) continue;
    if (out.length) out[out.length - 1].to = s.seq;
    out.push({ phase: s.phase, from: out.length ? s.seq : from, to });
  }
  return out.length ? out : [{ phase: -1, from, to }];
}

/* Step number (0 = before them, Infinity = after them) -> its stretches. */
function stretchesOf(track) {
  const items = track.steps.items, spans = track.spans, out = new Map();
  let at = 0;
  items.forEach((s, i) => {
    const to = i + 1 < items.length ? items[i + 1].firstSeq : track.last_seq + 1, first = at;
    while (at < spans.length && spans[at].seq < to) at++;
    out.set(s.kind === 'after' ? Infinity : s.number, phasesOf(spans.slice(first, at), i ? s.firstSeq : 0, to));
  });
  return out.size ? out : new Map([[0, phasesOf([], 0, track.last_seq + 1)]]);
}

const lengthOf = (parts) => parts.reduce((sum, p) => sum + p.to - p.from, 0);

/* For each track the events with known positions, and the gaps without events; and the axis's length. */
function alignTracks(tracks) {
  const steps = tracks.map(stretchesOf), anchors = tracks.map(() => ({ seq: [], x: [], gaps: [] }));
  const numbers = [...new Set(steps.flatMap((s) => [...s.keys()]))].sort((a, b) => (a === b ? 0 : a - b));
  let x = 0;
  const put = (side, parts, room) => {
    const all = lengthOf(parts);
    anchors[side].seq.push(parts[0].from, parts[0].from + all);
    anchors[side].x.push(x, x + room);
  };
  for (const n of numbers) {
    const parts = steps.map((s) => s.get(n)), [a, b] = parts;
    const alike = a && b && a.length === b.length && a.every((p, i) => p.phase === b[i].phase);
    const rows = alike ? a.map((p, i) => [[p], [b[i]]]) : [parts];
    for (const row of rows) {
      const room = Math.max(...row.filter(Boolean).map(lengthOf));
      row.forEach((p, side) => {
        if (p) put(side, p, room);
        else gap(anchors[side].gaps, x, x + room);
      });
      x += room;
    }
  }
  return { anchors, length: Math.max(1, x) };
}

/* Adds a gap; adjacent gaps are joined. */
function gap(gaps, from, to) {
  const last = gaps[gaps.length - 1];
  if (last && last[1] === from) last[1] = to;
  else gaps.push([from, to]);
}

function placeOn(anchors, seq) {
  const i = Math.max(0, countFirst(anchors.seq, (n) => n <= seq) - 1), j = Math.min(i + 1, anchors.seq.length - 1), length = anchors.seq[j] - anchors.seq[i];
  return anchors.x[i] + (length > 0 ? (Math.max(seq, anchors.seq[i]) - anchors.seq[i]) / length * (anchors.x[j] - anchors.x[i]) : 0);
}

/* The chart of one run; both charts share the view. */
class SideChart extends Chart {
  constructor(track, pair, side) {
    super(track);
    this.pair = pair;
    this.side = side;
  }
  place(seq, ns) {
    return this.axis === 'step' ? placeOn(this.pair.aligned.anchors[this.side], seq) : super.place(seq, ns);
  }
  /* Whether the run has nothing at x, because it has ended or has no such step. */
  absent(x) {
    const t = this.track;
    if (this.axis === 'step') return this.pair.aligned.anchors[this.side].gaps.some(([from, to]) => x >= from && x < to);
    return x > (this.axis === 'time' ? t.last_ns - t.first_ns : t.last_seq);
  }
  columns(width, shown, ratio) {
    const out = super.columns(width, shown, ratio), [from, to] = this.view;
    for (let c = 0; c < width; c++) {
      if (!this.absent(from + (c + 0.5) / width * (to - from))) continue;
      out.best[c] = out.low[c] = -1;
      if (out.only) out.only[c] = 0;
    }
    return out;
  }
  get all() {
    return this.pair ? this.pair.all : super.all;
  }
}

class PairChart {
  constructor(tracks) {
    this.charts = [];
    this.aligned = alignTracks(tracks);
    this.stepped = tracks.every((t) => t.steps.items.some((s) => s.kind === 'step'));
    this.charts = tracks.map((t, side) => new SideChart(t, this, side));
    this.setAxis(this.stepped ? 'step' : this.charts.some((c) => c.axis === 'events') ? 'events' : 'time');
  }
  get axis() {
    return this.charts[0].axis;
  }
  get all() {
    if (this.axis === 'step') return [0, this.aligned.length];
    return [0, Math.max(1, ...this.charts.map(({ track: t }) => (this.axis === 'time' ? t.last_ns - t.first_ns : t.last_seq)))];
  }
  get view() {
    return this.charts[0].view;
  }
  both(change) {
    for (const c of this.charts) change(c);
  }
  setAxis(axis) {
    this.both((c) => { c.axis = axis; });
    this.reset();
  }
  reset() {
    this.both((c) => c.reset());
  }
  isWhole() {
    return this.charts[0].isWhole();
  }
  setView(from, to) {
    this.both((c) => c.setView(from, to));
  }
  zoom(factor, center) {
    this.both((c) => c.zoom(factor, center));
  }
  pan(share) {
    this.both((c) => c.pan(share));
  }
  /* The next position where either run has a point: after x (step = 1) or before it (-1). */
  beside(x, step) {
    let best = null;
    for (const c of this.charts) {
      const points = c.track.points;
      let i = c.before(x);
      if (step < 0) while (i >= 0 && c.x(points[i]) >= x) i--;
      else i++;
      const at = i >= 0 && i < points.length ? c.x(points[i]) : null;
      if (at !== null && (best === null || (step > 0 ? at < best : at > best))) best = at;
    }
    return best === null ? x : best;
  }
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the page's two documents: the first picture's, and the rest. Columns of numbers become arrays. */

class Column {
  constructor(base64) {
    this.text = atob(base64);
    this.at = 0;
  }
  done() { return this.at >= this.text.length; }
  number() {
    let value = 0, scale = 1, byte;
    do {
      byte = this.text.charCodeAt(this.at++);
      value += (byte & 127) * scale;
      scale *= 128;
    } while (byte > 127);
    return value;
  }
  signed() {
    const n = this.number();
    return n % 2 ? -(n + 1) / 2 : n / 2;
  }
}

const FRAME = { python: 1, call: 2, forward: 4, plumbing: 8 };
function readFirst() {
  const doc = JSON.parse(document.getElementById('first').textContent);
  doc.texts = doc.texts.map(visible);
  doc.tracks.forEach((track, i) => prepareTrack(doc, track, i));
  return doc;
}

function readRest(doc) {
  const rest = JSON.parse(document.getElementById('rest').textContent);
  doc.texts = rest.texts.map(visible);
  doc.cut_texts += rest.cut_texts;
  doc.cut_nodes = rest.cut_nodes;
  readNames(doc, rest);
  doc.tracks.forEach((track, i) => completeTrack(doc, track, rest.tracks[i]));
  return rest;
}

function readNames(doc, rest) {
  const frames = new Column(rest.frames);
  doc.frames = [];
  while (!frames.done()) {
    const f = { fn: doc.texts[frames.number()], file: doc.texts[frames.number()], line: frames.number() };
    f.module = doc.texts[frames.number()];
    f.bits = frames.number();
    doc.frames.push(f);
  }
  const nodes = new Column(rest.nodes);
  doc.nodes = [{ caller: 0, frame: 0 }];
  while (!nodes.done()) doc.nodes.push({ caller: doc.nodes.length - nodes.number(), frame: nodes.number() });
}

function prepareTrack(doc, t, index) {
  t.index = index;
  t.file = doc.texts[t.file];
  t.peak_text = doc.texts[t.peak_text];
  t.apart.forEach((a) => { a.note = doc.texts[a.note]; });
  if (t.unused) Object.assign(t.unused, { fn: doc.texts[t.unused.fn], file: doc.texts[t.unused.file] });
  for (const f of t.summary || []) Object.assign(f, { text: visible(f.text), action: visible(f.action), fn: doc.texts[f.fn], file: doc.texts[f.file] });
  t.notes = t.notes.map((text) => doc.texts[text]);
  t.facts = t.facts.map(([label, text]) => [label, doc.texts[text]]);
  t.label = (t.rank === '' ? t.file : 'rank ' + t.rank) + (doc.tracks.length > 1 || t.device ? ', device ' + t.device : '');
  t.points = readCurve(doc, t);
  t.spans = t.marks = [];
  t.steps = { items: [] };
}

function completeTrack(doc, t, rest) {
  Object.assign(t, rest);
  if (rest.curve) t.points = readCurve(doc, t);
  t.spans = readSpans(t.steps, t.first_ns);
  t.steps.items = readSteps(doc, t.steps, t.first_ns);
  if (t.oom) {
    t.oom.apart.forEach((a) => { a.note = doc.texts[a.note]; });
    for (const r of t.oom.remedies) {
      r.what = doc.texts[r.what];
      r.how = doc.texts[r.how];
    }
  }
  for (const line of t.leaks ? t.leaks.lines : []) {
    line.fn = doc.texts[line.fn];
    line.file = doc.texts[line.file];
  }
  for (const mark of t.marks) if (mark.text !== undefined) mark.text = doc.texts[mark.text];
}

/* Numbers that are mostly zero: a bit mask of the others, then those. */
function readSparse(column, count, signed) {
  const bits = column.number(), values = new Array(count).fill(0);
  for (let i = 0; i < count; i++) if (bits & 1 << i) values[i] = signed ? column.signed() : column.number();
  return values;
}

/* The points in order. A point's figures apply from its event on. */
function readCurve(doc, t) {
  const c = t.curve, kinds = doc.classes.length, groups = new Column(c.groups), most = new Column(c.most);
  const seq = new Column(c.seq), time = new Column(c.time), reserved = new Column(c.reserved), used = new Column(c.used);
  const classes = new Column(c.classes), points = [], now = new Array(kinds).fill(0);
  let s = 0, ns = t.first_ns, r = 0, u = 0;
  while (!groups.done()) {
    const count = groups.number();
    for (let i = 0; i < count; i++) {
      s += seq.number();
      ns += time.signed();
      r += reserved.signed();
      u += used.signed();
      readSparse(classes, kinds, true).forEach((d, k) => { now[k] += d; });
      points.push({ seq: s, ns, reserved: r, used: u, classes: now.slice(), bytes: now.reduce((a, b) => a + b, 0) });
    }
    keepMost(points, count, readSparse(most, kinds + 2, false), kinds);
  }
  return addMoments(t, points, kinds);
}

/* Keeps by how much a class, reserved memory or the device was higher within a group than at its points. */
function keepMost(points, count, more, kinds) {
  if (!more.some((n) => n)) return;
  const group = points.slice(-count), last = group[count - 1], highest = (get) => Math.max(...group.map(get));
  last.most = more.map((n, k) => (n ? n + highest((p) => (k < kinds ? p.classes[k] : k === kinds ? p.reserved : p.used)) : 0));
}

/* Adds the key moments with their figures, unless they are points already. */
function addMoments(t, points, kinds) {
  const known = new Set(points.map((p) => p.seq));
  for (const m of t.moments) {
    const figures = new Column(m.figures);
    m.reserved = figures.number();
    m.used = figures.number();
    m.classes = readSparse(figures, kinds, false);
    m.ns = m.time_ns;
    m.bytes = m.classes.reduce((a, b) => a + b, 0);
    if (known.has(m.seq)) continue;
    known.add(m.seq);
    points.push({ seq: m.seq, ns: m.ns, reserved: m.reserved, used: m.used, classes: m.classes, bytes: m.bytes });
  }
  return points.sort((a, b) => a.seq - b.seq);
}

function readSpans(steps, first) {
  const c = new Column(steps.spans), spans = [];
  let seq = 0, ns = first;
  while (!c.done()) {
    const phase = c.number();
    seq += c.signed();
    ns += c.signed();
    spans.push({ phase, seq, ns, lastSeq: seq + c.number(), lastNs: ns + c.signed() });
  }
  return spans;
}

function readSteps(doc, steps, first) {
  const c = new Column(steps.rows), items = [];
  let number = 0, seq = 0, ns = first;
  while (!c.done()) {
    const s = { number: number += c.number(), firstSeq: seq += c.number(), lastSeq: seq + c.number(), firstNs: ns += c.signed(),
      lastNs: ns + c.signed(), begin: c.number(), end: c.number(), peak: c.number(), peakSeq: seq + c.number(), peakNs: ns + c.signed(),
      growth: c.signed(), phase: c.number(), ended: c.number(), what: doc.texts[c.number()], phases: [] };
    for (let p = 0; p < doc.phases.length; p++) {
      const times = c.number();
      s.phases.push(times ? { times, peak: c.number(), end: c.number(), growth: c.signed() } : null);
    }
    s.kind = s.number === 0 ? 'before' : 'step';
    items.push(s);
  }
  if (steps.tail && items.length) items[items.length - 1].kind = 'after';
  return items;
}

function readTable(doc, base64, names, texts) {
  const c = new Column(base64), rows = [];
  const cell = (name, n) => [name, texts.includes(name) ? doc.texts[n] : n];
  while (!c.done()) rows.push(Object.fromEntries([0, 1, 2, 3, 4, 5].map((i) => cell(names[i], c.number()))));
  return rows;
}

/* The blocks of a track, decoded on first use. */
function livesOf(doc, t) {
  if (t.blocks) return t.blocks;
  const l = t.lives, c = {};
  for (const key of ['seq', 'time', 'addr', 'size', 'origin', 'context', 'end', 'end_stack', 'stretches', 'uses']) c[key] = new Column(l[key]);
  t.origins = readTable(doc, l.origins, ['node', 'fn', 'file', 'line', 'backward'], ['fn', 'file']);
  t.contexts = readTable(doc, l.contexts, ['thread', 'stream', 'stage', 'memory', 'tid'], ['thread', 'stream']);
  t.evidence = readTable(doc, l.evidence, ['category', 'confidence', 'rule', 'because', 'when', 'place'], ['confidence', 'rule', 'because', 'when', 'place']);
  t.blocks = [];
  let seq = 0, ns = t.first_ns, addr = 0;
  for (let i = 0; i < l.count; i++) {
    seq += c.seq.number();
    ns += c.time.signed();
    addr += c.addr.signed();
    const b = { id: i, track: t, seq, ns, addr, size: c.size.number(), origin: t.origins[c.origin.number()],
      context: t.contexts[c.context.number()], endSeq: 0, endNs: 0, endNode: 0, stretches: [] };
    const life = c.end.number();
    if (life) {
      b.endSeq = seq + life;
      b.endNs = ns + c.end.signed();
      b.endNode = c.end_stack.number();
    }
    const more = c.stretches.number();
    for (let k = 0, from = seq; k <= more; k++) {
      if (k) from += c.stretches.number();
      b.stretches.push({ seq: from, evidence: t.evidence[c.stretches.number()] });
    }
    b.uses = c.uses.done() ? null : readUses(doc, c.uses, b);
    b.pale = b.uses && l.all_uses ? [[seq, b.uses.first.seq], [b.uses.over ? b.uses.last.seq : Infinity, b.endSeq || Infinity]] : [];
    t.blocks.push(b);
  }
  readSegments(t);
  addPale(t, doc.classes.length);
  return t.blocks;
}

function readUses(doc, c, b) {
  const count = c.number(), use = (from) => ({ seq: from.seq + c.number(), ns: from.ns + c.signed(), by: doc.texts[c.number()] });
  if (!count) return null;
  const first = use(b), last = use(first), flags = c.number(), u = { count, first, last, over: (flags & 1) > 0, whole: flags < 2, pause: c.number() };
  return u.pause ? { ...u, pauseFrom: first.ns + c.signed(), pauseBy: doc.texts[c.number()], resumedBy: doc.texts[c.number()] } : u;
}

const isPale = (b, seq) => b.pale.some(([from, to]) => from <= seq && seq < to);

/* Adds to each point the bytes per class that are not in use yet or any more. If no change was left out, uses between points
 * become points; of uses that are close on both axes only the last. */
function addPale(t, kinds) {
  const changes = [], cells = new Map(), now = new Array(kinds).fill(0), cell = (part, all) => Math.floor(2000 * part / (all || 1));
  for (const b of t.blocks) {
    for (const [from, to] of b.pale) b.stretches.forEach((s, i) => {
      const first = Math.max(from, s.seq), end = Math.min(to, i + 1 < b.stretches.length ? b.stretches[i + 1].seq : Infinity), k = s.evidence.category;
      if (first < end) changes.push([first, k, b.size], [end, k, -b.size]);
    });
    if (b.pale.length && t.curve.group === 1) for (const { seq, ns } of [b.uses.first, b.uses.last]) {
      const key = cell(seq, t.last_seq) + ',' + cell(ns - t.first_ns, t.last_ns - t.first_ns);
      if (!cells.has(key) || cells.get(key).seq < seq) cells.set(key, { seq, ns });
    }
  }
  if (!changes.length) return;
  changes.sort((x, y) => x[0] - y[0]);
  const known = new Set(t.points.map((q) => q.seq)), more = [...cells.values()].filter((u) => u.seq > t.points[0].seq && !known.has(u.seq));
  t.points = t.points.concat(more.map((u) => ({ ...t.points[pointIndex(t.points, u.seq)], ...u, most: undefined, between: true }))).sort((x, y) => x.seq - y.seq);
  let next = 0, row = now.slice();
  for (const q of t.points) {
    const before = next;
    for (; next < changes.length && changes[next][0] <= q.seq; next++) now[changes[next][1]] += changes[next][2];
    q.pale = row = before < next ? now.slice() : row;
  }
}

function readSegments(t) {
  const c = new Column(t.segments.rows);
  let seq = 0, addr = 0;
  t.segments.items = [];
  while (!c.done()) {
    seq += c.number();
    const life = c.number();
    addr += c.signed();
    t.segments.items.push({ seq, endSeq: life ? seq + life : 0, addr, size: c.number(), mapped: c.number() === 0, node: c.number(), pool: t.segments.pools[c.number() - 1] || '' });
  }
}

/* The number of items at the start of a sorted array for which `is` holds. */
function countFirst(items, is) {
  let low = 0, high = items.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (is(items[middle])) low = middle + 1;
    else high = middle;
  }
  return low;
}

function stretchAt(block, seq) {
  let found = block.stretches[0];
  for (const s of block.stretches) if (s.seq <= seq) found = s;
  return found;
}

const isAlive = (b, seq) => b.seq <= seq && (!b.endSeq || seq < b.endSeq);

/* The same without blocks, for the first picture. */
function sumsAt(doc, t, seq) {
  const point = t.points[pointIndex(t.points, seq)];
  return { track: t, seq, point, ns: point.ns, blocks: [], classes: point.classes, bytes: point.bytes, complete: true };
}

/* The state after an event: the listed blocks with their classes then, the point if its figures are exact, and per class the
 * bytes that are not listed. */
function momentAt(doc, t, seq) {
  const blocks = livesOf(doc, t).filter((b) => isAlive(b, seq));
  const at = pointIndex(t.points, seq), point = t.points[at], exact = point && (point.seq === seq || t.curve.group === 1);
  const m = { track: t, seq, point: exact ? point : null, ns: point ? point.ns : t.first_ns, blocks: [], rest: [], listed: 0 };
  const sums = new Array(doc.classes.length).fill(0);
  for (const b of blocks) {
    const category = stretchAt(b, seq).evidence.category;
    sums[category] += b.size;
    m.listed += b.size;
    m.blocks.push({ block: b, category, size: b.size });
  }
  m.classes = exact ? point.classes : sums;
  m.bytes = exact ? point.bytes : m.listed;
  m.rest = m.classes.map((n, i) => n - sums[i]);
  m.complete = exact ? m.bytes === m.listed : t.lives.left_out === 0;
  return m;
}

/* Index of the last point at or before an event, else 0. */
const pointIndex = (points, seq) => Math.max(0, countFirst(points, (p) => p.seq <= seq) - 1);
const stepAt = (t, seq) => t.steps.items[Math.max(0, countFirst(t.steps.items, (s) => s.firstSeq <= seq) - 1)];
const spanAt = (t, seq) => t.spans[Math.max(0, countFirst(t.spans, (s) => s.seq <= seq) - 1)];

/* Blocks of a moment by class and line, the largest first. */
function holdersOf(m) {
  const lines = new Map();
  for (const e of m.blocks) {
    const words = originText(e.block.origin), key = e.category + '\n' + words + '\n' + e.block.origin.file, l = lines.get(key) || { entry: e, category: e.category, words, bytes: 0, blocks: 0 };
    l.bytes += e.size;
    l.blocks++;
    lines.set(key, l);
  }
  return [...lines.values()].sort((x, y) => y.bytes - x.bytes);
}

/* "step 2, backward" */
function whereText(doc, t, seq) {
  if (t.state) return ''; /* a single moment has no steps */
  const step = stepAt(t, seq), near = spanAt(t, seq), span = near && seq <= near.lastSeq ? near : null;
  if (!step || t.steps.items.length < 2) return span ? doc.phases[span.phase] : '';
  if (step.kind === 'before') return 'before the first step';
  if (step.kind === 'after') return 'after the last step';
  const next = t.steps.items[t.steps.items.indexOf(step) + 1];
  if (seq > step.lastSeq && next && next.number > step.number + 1) return 'a step between ' + step.number + ' and ' + next.number;
  return 'step ' + step.number + (span ? ', ' + doc.phases[span.phase] : '');
}

const factOf = (t, name) => (t.facts.find(([label]) => label === name) || [])[1] || '';

/* A sentence about the steps and phases that the page leaves out; null if none. */
function thinnedText(t) {
  const parts = [[t.steps.left_out, 'step'], [t.steps.spans_left_out, 'phase']].filter(([n]) => n).map(([n, word]) => plural(n, word));
  return parts.length ? parts.join(' and ') + ' left out, spread evenly over the run.' : null;
}

/* "Net.forward model.py:12" */
function originText(o) {
  if (o.backward) return o.fn + ' (backward)';
  if (!o.fn && !o.file) return '(no stack)';
  return o.fn + (o.file ? ' ' + baseName(o.file) + (o.line ? ':' + o.line : '') : '');
}

/* The frames of a node, outermost first. */
function framesOf(doc, node) {
  const frames = [];
  for (; node; node = doc.nodes[node].caller) frames.push(doc.frames[doc.nodes[node].frame]);
  return frames.reverse();
}

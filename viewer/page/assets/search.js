/* SPDX-License-Identifier: Apache-2.0 */
/* The page of a search: a sortable table of all cards and settings, curves of the memory needed by the varied value, and why
 * some do not fit. Each row links to the page of its run. */

const LINES = 8; /* colours in the style sheet, from --line-0 */
const VERDICTS = ['fits', 'not stable', 'does not fit', 'failed'];

const settingText = (doc, vary) => doc.names.map((n) => n + ' ' + vary[n]).join(', ');
const pageLink = (row, text) => row.page ? h('a', { href: encodeURIComponent(row.page) }, text) : text;

function searchColumns(doc) {
  const bytes = (key, title) => ({ title, right: true, of: (r) => Math.max(r[key] || 0, 0), show: (r) => (key === 'lacking_bytes' && !r[key] ? '' : h('span', { title: exactText(Math.max(r[key], 0)) }, bytesText(Math.max(r[key], 0)))) });
  return [
    { title: 'card', class: 'short', of: (r) => r.at, show: (r) => r.card },
    ...doc.names.map((n) => ({ title: n, right: true, of: (r) => r.vary[n], show: (r) => r.vary[n] })),
    { title: 'fits', of: (r) => VERDICTS.indexOf(r.verdict), show: (r) => (r.fits ? 'yes' : h('b', { class: 'alarm' }, r.verdict === 'does not fit' ? 'no' : r.verdict)) },
    bytes('capacity_bytes', 'capacity'), bytes('peak_bytes', 'allocated'), bytes('peak_reserved_bytes', 'reserved'), bytes('context_bytes', 'context + libraries'),
    bytes('margin_bytes', 'stays free'),
    ...doc.cards.some((r) => r.lacking_bytes) ? [bytes('lacking_bytes', 'lacks')] : [],
    { title: 'source', of: (r) => (r.measured ? '' : r.run_on), show: (r) => (r.measured ? 'run' : 'from ' + r.run_on) },
    { title: 'the peak', class: 'wide', of: (r) => r.peak_line, show: (r) => r.error || [r.peak_text + '; most by ' + r.peak_line, r.rising, r.ended || r.late].filter(Boolean).join('. ') },
    ...doc.pages.some(Boolean) ? [{ title: 'page', class: 'short', of: (r) => r.page, show: (r) => (r.page ? pageLink(r, 'open') : '') }] : [],
  ];
}

function searchTable(doc) {
  const p = panel('cards', doc.names.length ? 'Cards and settings' : 'Cards'), holder = h('div', { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': 'Cards as a table' });
  const columns = searchColumns(doc);
  let sort = null, down = false;
  const heading = (c) => h('button', { type: 'button', class: 'sort', 'aria-label': 'Sort by ' + c.title,
    onclick: () => { down = sort === c ? !down : false; sort = c; show(); } }, c.title);
  function show() {
    const rows = doc.cards.slice();
    if (sort) rows.sort((a, b) => (sort.of(a) < sort.of(b) ? -1 : sort.of(a) > sort.of(b) ? 1 : a.index - b.index) * (down ? -1 : 1));
    replace(holder, table(columns.map((c) => ({ ...c, title: heading(c), sorted: sort === c ? (down ? 'descending' : 'ascending') : null })), rows.map((r) => ({ props: { 'data-card': r.card, 'data-fits': r.fits ? 'yes' : 'no' }, cells: columns.map((c) => c.show(r)) })), { class: 'search' }));
  }
  show();
  p.body.append(holder);
}

/* The fitted line's value at the largest value that fits, if that is beyond the last point. */
function beyondOf(doc, name, curve) {
  const line = doc.lines.find(curve.like), most = doc.largest.find(curve.like), x = most ? most.vary[name] : 0;
  return line && x > curve.points[curve.points.length - 1].x ? { x, y: Number(line.base_bytes) + Number(line.bytes_each) * x } : null;
}

/* One curve for each card and each setting of the other names. */
function searchCurves(doc, name) {
  const curves = new Map();
  for (const r of doc.cards) {
    if (!r.fits || !r.measured) continue;
    const others = doc.names.filter((n) => n !== name), key = [r.card, ...others.map((n) => n + ' ' + r.vary[n])].join(', ');
    if (!curves.has(key)) curves.set(key, { key, points: [], like: (o) => o.card === r.card && others.every((n) => o.vary[n] === r.vary[n]) });
    curves.get(key).points.push({ x: r.vary[name], y: r.device_bytes });
  }
  for (const c of curves.values()) {
    c.points.sort((a, b) => a.x - b.x);
    c.beyond = beyondOf(doc, name, c);
  }
  return [...curves.values()].filter((c) => c.points.length > 1);
}

function drawLimits(g, doc, box, top, labels) {
  const seen = new Set();
  g.lineWidth = 1;
  for (const r of doc.cards) {
    if (seen.has(r.card) || r.capacity_bytes > top) continue;
    seen.add(r.card);
    const y = box.top + box.height - r.capacity_bytes / top * box.height;
    g.strokeStyle = css('--alarm');
    g.setLineDash([5, 4]);
    g.beginPath();
    g.moveTo(box.left, y);
    g.lineTo(box.left + box.width, y);
    g.stroke();
    g.setLineDash([]);
    labels.line(box.left, y, box.width, 1);
    labels.add(r.card + ' ' + bytesText(r.capacity_bytes), [0.01, 0.2, 0.4, 0.6, 0.8, 1].flatMap((part) => [[box.left + part * box.width, y - 10], [box.left + part * box.width, y + 11]]), { px: 11, ink: '--alarm' });
  }
}

/* The height of a curve at x, or null beyond its ends. */
function heightAt(points, x) {
  const i = points.findIndex((p) => p.x >= x);
  if (i < 0 || (i === 0 && points[0].x > x)) return null;
  const [a, b] = [points[Math.max(0, i - 1)], points[i]];
  return a.x === b.x ? b.y : a.y + (x - a.x) / (b.x - a.x) * (b.y - a.y);
}

/* Curves that coincide are drawn in turns, so that none hides another. Returns, for each piece of a curve between two of its
 * points, how many coincide there and the index of this one. */
function turnsOf(curves, near) {
  const touch = (a, b, c) => [0.25, 0.5, 0.75].every((part) => {
    const other = heightAt(c.points, a.x + part * (b.x - a.x));
    return other !== null && Math.abs(other - a.y - part * (b.y - a.y)) < near;
  });
  return curves.map((curve, i) => curve.points.slice(1).map((b, k) => {
    const group = curves.map((_, n) => n).filter((n) => n === i || touch(curve.points[k], b, curves[n]));
    return { of: group.length, at: group.indexOf(i) };
  }));
}

function drawBeyond(g, from, to, labels) {
  g.lineWidth = 1.5;
  g.setLineDash([1.5, 4]);
  g.beginPath();
  g.moveTo(...from);
  g.lineTo(...to);
  g.stroke();
  g.setLineDash([]);
  labels.segment(from, to);
}

/* Pieces that coincide with no other curve are drawn first, then dashes, then points. */
const DASH = 9;

function drawPieces(g, points, turns, shared) {
  g.lineWidth = 2;
  points.slice(1).forEach((p, i) => {
    if ((turns[i].of > 1) !== shared) return;
    g.setLineDash(shared ? [DASH, DASH * (turns[i].of - 1)] : []);
    g.lineDashOffset = -DASH * turns[i].at;
    g.beginPath();
    g.moveTo(...points[i]);
    g.lineTo(...p);
    g.stroke();
  });
  g.setLineDash([]);
}

/* Where curves coincide, the points of later ones are smaller. */
function drawPoints(g, points, turns, labels) {
  points.forEach((p, i) => {
    const turn = turns[Math.min(i, turns.length - 1)];
    g.beginPath();
    g.arc(...p, 3 + 2 * (turn.of - 1 - turn.at), 0, 7);
    g.fill();
    labels.mark(p[0] - 4, p[1] - 4, 8, 8);
    if (i) labels.segment(points[i - 1], p);
  });
}

function drawCurves(g, curves, at, near, labels) {
  const turns = turnsOf(curves, near), each = (draw) => curves.forEach((c, i) => { g.strokeStyle = g.fillStyle = css('--line-' + i % LINES); draw(c, c.points.map(at), turns[i]); });
  each((c, points) => c.beyond && drawBeyond(g, points[points.length - 1], at(c.beyond), labels));
  each((c, points, turn) => drawPieces(g, points, turn, false));
  each((c, points, turn) => drawPieces(g, points, turn, true));
  each((c, points, turn) => drawPoints(g, points, turn, labels));
}

function drawNumbers(g, box, most, name, bottom) {
  const step = Math.max(1, niceStep(most, Math.max(3, Math.floor(box.width / 65))));
  drawTicks(g, 0, most, step, box, bottom, countText);
  g.textAlign = 'right';
  g.fillText(clip(g, name, box.left - 10), box.left - 8, bottom);
  g.textAlign = 'left';
}

function curvesPanel(doc) {
  const name = doc.names.find((n) => doc.cards.every((r) => typeof r.vary[n] === 'number'));
  const curves = name ? searchCurves(doc, name) : [];
  if (!curves.length) return;
  const p = panel('curves', 'Memory in use against ' + name, 'each card\u2019s memory as a line' + (curves.some((c) => c.beyond) ? '; dotted to the largest that fits: the straight line of the table' : ''));
  const all = curves.flatMap((c) => [...c.points, c.beyond].filter(Boolean)), most = 1.05 * Math.max(...all.map((q) => q.x)), need = Math.max(...all.map((q) => q.y));
  const above = doc.cards.map((r) => r.capacity_bytes).filter((c) => c >= need).sort((a, b) => a - b)[0];
  const top = 1.1 * (above && above < 3 * need ? above : need);
  p.body.append(h('p', { class: 'tools' }, curves.map((c, i) => h('span', {}, swatch('var(--line-' + i % LINES + ')'), c.key))));
  const c = canvas(p.body, 300, (g, width, height) => {
    const box = { left: EDGE.left, top: 14, width: width - EDGE.left - EDGE.right, height: height - 44 }, labels = new Labels(g, { ...box, top: 0, height: box.top + box.height });
    const at = (p) => [box.left + p.x / most * box.width, box.top + box.height - p.y / top * box.height];
    g.clearRect(0, 0, width, height);
    drawGrid(g, box, top);
    drawNumbers(g, box, most, name, height - 10);
    drawLimits(g, doc, box, top, labels);
    drawCurves(g, curves, at, 4 * top / box.height, labels);
    labels.draw();
  });
  on('theme', c.redraw, true);
  if (doc.lines.length)
    p.body.append(table([{ title: 'run on' }, { title: 'with', class: 'wide' }, { title: 'at 0', right: true }, { title: 'for each ' + name, right: true }, { title: 'off by at most', right: true }, { title: 'runs', right: true, class: 'wide-only' }],
      doc.lines.map((l) => [l.card, doc.names.filter((n) => n !== name).map((n) => n + ' ' + l.vary[n]).join(', '), bytesText(Math.max(0, Math.round(l.base_bytes))), bytesText(Math.max(0, Math.round(l.bytes_each))), fixed(100 * l.error, 1) + ' %', l.points])));
}

function largestPanel(doc) {
  if (!doc.largest.length) return;
  const p = panel('largest', 'The largest that fits');
  p.body.append(table([{ title: 'card' }, ...doc.names.map((n) => ({ title: n, right: true })), { title: 'limit', class: 'wide' }],
    doc.largest.map((l) => [l.card, ...doc.names.map((n) => l.vary[n]), l.bounded ? 'run on that card; the next does not fit' : 'the largest that was asked for'])));
}

/* Sets of changes as bars, below those of the card's memory and the unchanged program. */
function setsPanel(doc) {
  for (const card of doc.cards.filter((c) => (doc.sets || []).some((s) => s.card === c.card))) {
    const sets = doc.sets.filter((s) => s.card === card.card), needs = (s) => s.capacity_bytes - s.margin_bytes;
    const rows = [{ name: 'memory of ' + card.card, bytes: card.capacity_bytes }, ...card.needed_bytes ? [{ name: 'the program as it is', bytes: card.needed_bytes, colour: 'var(--alarm)' }] : [],
      ...sets.map((s) => ({ name: s.changes.join(' + '), bytes: s.verdict === 'failed' ? 0 : needs(s), colour: s.fits ? 'var(--accent)' : 'var(--alarm)', set: s }))];
    const p = panel('sets-' + card.index, 'Changes with which it fits ' + card.card, 'those that fit come first, the cheapest of them on top'), most = Math.max(...rows.map((r) => r.bytes));
    p.body.append(h('div', { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': 'Sets of changes as a table' },
      table([{ title: 'with' }, { title: 'fits' }, { title: 'slower', right: true }, { title: 'needs', right: true }, { title: 'peak', right: true }, { title: 'predicted', right: true }, { title: 'needs, of the largest', class: 'wide' }],
        rows.map((r) => ({ props: { 'data-set': r.set ? r.name : '' }, cells: [r.name, r.set ? (r.set.fits ? 'yes' : h('b', { class: 'alarm' }, r.set.verdict === 'does not fit' ? 'no' : r.set.verdict)) : '',
          r.set ? fixed(100 * r.set.slowdown - 100, 0) + ' %' : '', r.bytes ? bytesText(r.bytes) : '', r.set ? bytesText(r.set.peak_bytes) : '', r.set && r.set.predicted_most_bytes ? [...new Set([r.set.predicted_peak_bytes, r.set.predicted_most_bytes].map(bytesText))].join(' - ') : '', bar(r.bytes, most, r.colour)] })), { class: 'search' })));
    for (const s of sets.filter((x) => x.fits)) p.body.append(h('h3', {}, s.changes.join(' + ')), h('p', { class: 'note' }, s.cost), h('pre', {}, s.code.join('\n')));
  }
}

/* The memory that the program needs on a larger card, and the memory of this one. */
function needsText(r) {
  const text = bytesText(r.needed_bytes) === bytesText(r.available_bytes) ? exactText : bytesText;
  return 'lacking_bytes' in r ? 'The program took ' + text(r.needed_bytes) + ' of ' + r.needed_on + ', this card has ' + text(r.available_bytes) + (r.lacking_bytes ? ' and lacks ' + text(r.lacking_bytes) + '. ' : ', which would be enough. ') : '';
}

function reasonsPanel(doc) {
  const rows = doc.cards.filter((r) => r.cause && r.measured);
  if (!rows.length) return;
  const p = panel('reasons', 'Why not', 'what `oom` says of the run');
  for (const r of rows.slice(0, 40))
    p.body.append(h('h3', {}, pageLink(r, r.card + (doc.names.length ? ', ' + settingText(doc, r.vary) : '')), ': ' + r.cause.replaceAll('_', ' ')), h('p', { class: 'note' }, needsText(r) + r.text),
      h('ul', { class: 'note' }, r.remedies.slice(0, 4).map((m) => h('li', {}, m.what + (m.at_most ? ' (saves up to ' : ' (saves ') + bytesText(m.saves_bytes) + ')'))));
  if (rows.length > 40) p.body.append(h('p', { class: 'note' }, plural(rows.length - 40, 'more row') + ' that do not fit: see the table.'));
}

function startSearch() {
  const doc = JSON.parse(document.getElementById('first').textContent, (key, value) => (typeof value === 'string' ? visible(value) : value));
  Object.assign(doc, doc.fit);
  doc.cards.forEach((r, i) => { r.index = i; r.at = doc.cards.findIndex((x) => x.card === r.card); r.page = doc.pages[i]; });
  app.doc = doc;
  const fits = doc.cards.filter((r) => r.fits).length;
  document.getElementById('command').textContent = doc.command;
  document.title = 'fit: ' + doc.command + ' - gpumemtrace';
  document.getElementById('summary').textContent = 'Fits ' + fits + ' of ' + plural(doc.cards.length, doc.names.length ? 'row' : 'card') + '; ' + plural(doc.runs + doc.runs_kept, 'run') + ' on simulated cards.';
  themeSwitch();
  if (doc.summary.length) panel('findings', 'What stands out').body.append(findingsList(doc.summary, () => null));
  searchTable(doc);
  setsPanel(doc);
  largestPanel(doc);
  curvesPanel(doc);
  reasonsPanel(doc);
  document.getElementById('panels').append(h('p', { class: 'note' }, 'Made by gpumemtrace ' + doc.tool + '. A row that was not run follows from the run on the card that it names.'));
  window.gpumemtrace = { app };
  document.documentElement.dataset.ready = 'yes';
}

startSearch();

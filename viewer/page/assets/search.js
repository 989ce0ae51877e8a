/* SPDX-License-Identifier: Apache-2.0 */
/* The page of a search: all cards and settings as a table to sort, curves of what was needed against what varied, why some
 * do not fit. Each row leads to the page of the run that it rests on. */

const LINE_COLOURS = ['#2b5fa8', '#b26a00', '#3b7d3c', '#a3457f', '#5d6c7b', '#b3261e', '#7a5bbd', '#00838f'];
const VERDICTS = ['fits', 'not stable', 'does not fit', 'failed'];

const settingText = (doc, vary) => doc.names.map((n) => n + ' ' + vary[n]).join(', ');
const pageLink = (row, text) => row.page ? h('a', { href: encodeURIComponent(row.page) }, text) : text;

function searchColumns(doc) {
  const bytes = (key, title) => ({ title, right: true, of: (r) => Math.max(r[key], 0), show: (r) => h('span', { title: exactText(Math.max(r[key], 0)) }, bytesText(Math.max(r[key], 0))) });
  return [
    { title: 'card', of: (r) => r.at, show: (r) => r.card },
    ...doc.names.map((n) => ({ title: n, right: true, of: (r) => r.vary[n], show: (r) => r.vary[n] })),
    { title: 'fits', of: (r) => VERDICTS.indexOf(r.verdict), show: (r) => (r.fits ? 'yes' : h('b', { class: 'alarm' }, r.verdict === 'does not fit' ? 'no' : r.verdict)) },
    bytes('capacity_bytes', 'capacity'), bytes('peak_bytes', 'allocated'), bytes('peak_reserved_bytes', 'reserved'), bytes('context_bytes', 'context + libraries'),
    bytes('margin_bytes', 'stays free'),
    { title: 'source', of: (r) => (r.measured ? '' : r.run_on), show: (r) => (r.measured ? 'run' : 'from ' + r.run_on) },
    { title: 'the peak', class: 'wide', of: (r) => r.peak_line, show: (r) => r.error || [r.peak_text + '; most by ' + r.peak_line, r.rising, r.ended || r.late].filter(Boolean).join('. ') },
    { title: '', of: (r) => r.page, show: (r) => pageLink(r, 'page of the run') },
  ];
}

function searchTable(doc) {
  const p = panel('cards', doc.names.length ? 'Cards and settings' : 'Cards'), holder = h('div', { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': 'Cards as a table' });
  const columns = searchColumns(doc);
  let sort = null, down = false;
  const heading = (c) => h('button', { type: 'button', class: 'sort', 'aria-label': 'Sort by ' + (c.title || 'page'),
    onclick: () => { down = sort === c ? !down : false; sort = c; show(); } }, c.title || '\u00a0');
  function show() {
    const rows = doc.cards.slice();
    if (sort) rows.sort((a, b) => (sort.of(a) < sort.of(b) ? -1 : sort.of(a) > sort.of(b) ? 1 : a.index - b.index) * (down ? -1 : 1));
    replace(holder, table(columns.map((c) => ({ ...c, title: heading(c), sorted: sort === c ? (down ? 'descending' : 'ascending') : null })), rows.map((r) => ({ props: { 'data-card': r.card, 'data-fits': r.fits ? 'yes' : 'no' }, cells: columns.map((c) => c.show(r)) })), { class: 'search' }));
  }
  show();
  p.body.append(holder);
}

/* One curve for each card that was run and each setting of the other names. */
function searchCurves(doc, name) {
  const curves = new Map();
  for (const r of doc.cards) {
    if (!r.fits || !r.measured) continue;
    const others = doc.names.filter((n) => n !== name).map((n) => n + ' ' + r.vary[n]).join(', ');
    const key = r.card + (others ? ', ' + others : '');
    if (!curves.has(key)) curves.set(key, { key, points: [] });
    curves.get(key).points.push({ x: r.vary[name], y: r.device_bytes });
  }
  for (const c of curves.values()) c.points.sort((a, b) => a.x - b.x);
  return [...curves.values()].filter((c) => c.points.length > 1);
}

function drawLimits(g, doc, box, top) {
  g.font = FONT(11);
  g.textBaseline = 'bottom';
  const seen = new Set();
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
    g.fillStyle = css('--alarm');
    g.fillText(r.card, box.left + 6 + (seen.size - 1) % 4 * 130, y - 2);
  }
}

function drawCurve(g, curve, colour, box, most, top) {
  const at = (p) => [box.left + p.x / most * box.width, box.top + box.height - p.y / top * box.height];
  g.strokeStyle = g.fillStyle = colour;
  g.lineWidth = 1.6;
  g.beginPath();
  curve.points.forEach((p, i) => (i ? g.lineTo(...at(p)) : g.moveTo(...at(p))));
  g.stroke();
  for (const p of curve.points) {
    g.beginPath();
    g.arc(...at(p), 3, 0, 7);
    g.fill();
  }
  g.lineWidth = 1;
}

function drawNumbers(g, box, most, name, bottom) {
  const step = Math.max(1, niceStep(most, Math.max(2, Math.floor(box.width / 90))));
  g.font = FONT(11);
  g.fillStyle = css('--ink-3');
  g.textBaseline = 'alphabetic';
  g.textAlign = 'center';
  for (let v = 0; v <= most; v += step) g.fillText(countText(v), box.left + v / most * box.width, bottom);
  g.textAlign = 'right';
  g.fillText(name, box.left + box.width, bottom - 14);
  g.textAlign = 'left';
}

function curvesPanel(doc) {
  const name = doc.names.find((n) => doc.cards.every((r) => typeof r.vary[n] === 'number'));
  const curves = name ? searchCurves(doc, name) : [];
  if (!curves.length) return;
  const p = panel('curves', 'Memory in use against ' + name, 'with each card\u2019s memory as a line');
  const most = 1.05 * Math.max(...curves.flatMap((c) => c.points.map((q) => q.x))), need = Math.max(...curves.flatMap((c) => c.points.map((q) => q.y)));
  const above = doc.cards.map((r) => r.capacity_bytes).filter((c) => c >= need).sort((a, b) => a - b)[0];
  const top = 1.1 * (above && above < 3 * need ? above : need);
  p.body.append(h('p', { class: 'tools' }, curves.map((c, i) => h('span', {}, swatch(LINE_COLOURS[i % LINE_COLOURS.length]), c.key))));
  const c = canvas(p.body, 300, (g, width, height) => {
    const box = { left: EDGE.left, top: 14, width: width - EDGE.left - EDGE.right, height: height - 44 };
    g.clearRect(0, 0, width, height);
    drawGrid(g, box, top);
    drawNumbers(g, box, most, name, height - 10);
    drawLimits(g, doc, box, top);
    curves.forEach((curve, i) => drawCurve(g, curve, LINE_COLOURS[i % LINE_COLOURS.length], box, most, top));
  });
  on('theme', c.redraw, true);
  if (doc.lines.length)
    p.body.append(table([{ title: 'run on' }, { title: 'with' }, { title: 'at 0', right: true }, { title: 'for each ' + name, right: true }, { title: 'off by at most', right: true }, { title: 'runs', right: true }],
      doc.lines.map((l) => [l.card, doc.names.filter((n) => n !== name).map((n) => n + ' ' + l.vary[n]).join(', '), bytesText(Math.max(0, Math.round(l.base_bytes))), bytesText(Math.max(0, Math.round(l.bytes_each))), fixed(100 * l.error, 1) + ' %', l.points])));
}

function largestPanel(doc) {
  if (!doc.largest.length) return;
  const p = panel('largest', 'The largest that fits');
  p.body.append(table([{ title: 'card' }, ...doc.names.map((n) => ({ title: n, right: true })), { title: '' }],
    doc.largest.map((l) => [l.card, ...doc.names.map((n) => l.vary[n]), l.bounded ? 'run on that card; the next does not fit' : 'the largest that was asked for'])));
}

function reasonsPanel(doc) {
  const rows = doc.cards.filter((r) => r.cause && r.measured);
  if (!rows.length) return;
  const p = panel('reasons', 'Why not', 'what `oom` says of the run');
  for (const r of rows.slice(0, 40))
    p.body.append(h('h3', {}, pageLink(r, r.card + (doc.names.length ? ', ' + settingText(doc, r.vary) : '')), ': ' + r.cause.replaceAll('_', ' ')), h('p', { class: 'note' }, r.text),
      h('ul', { class: 'note' }, r.remedies.slice(0, 4).map((m) => h('li', {}, m.what + ' (saves ' + bytesText(m.saves_bytes) + ')'))));
  if (rows.length > 40) p.body.append(h('p', { class: 'note' }, plural(rows.length - 40, 'more row') + ' that do not fit: see the table.'));
}

function startSearch() {
  const doc = JSON.parse(document.getElementById('first').textContent, (key, value) => (typeof value === 'string' ? visible(value) : value));
  Object.assign(doc, doc.fit);
  doc.cards.forEach((r, i) => { r.index = i; r.at = doc.cards.findIndex((x) => x.card === r.card); r.page = doc.pages[i]; });
  app.doc = doc;
  const fits = doc.cards.filter((r) => r.fits).length;
  document.getElementById('command').textContent = doc.command;
  document.getElementById('summary').textContent = 'Fits ' + fits + ' of ' + plural(doc.cards.length, doc.names.length ? 'row' : 'card') + '; ' + plural(doc.runs + doc.runs_kept, 'run') + ' on simulated cards.';
  themeSwitch();
  if (doc.summary.length) panel('findings', 'What stands out').body.append(findingsList(doc.summary, () => null));
  searchTable(doc);
  largestPanel(doc);
  curvesPanel(doc);
  reasonsPanel(doc);
  document.getElementById('panels').append(h('p', { class: 'note' }, 'Made by gpumemtrace ' + doc.tool + '. A row that was not run follows from the run on the card that it names.'));
  window.gpumemtrace = { app };
  document.documentElement.dataset.ready = 'yes';
}

startSearch();

/* SPDX-License-Identifier: Apache-2.0 */
/* Both runs over time on one axis: the two totals as lines, then each run by class, all on one scale, and below them the
 * difference. The readout has both runs' bytes at the pointer, or at the position chosen by keys. */

function diffTimelinePanel(doc) {
  const p = panel('timeline', 'Timeline'), tracks = doc.tracks, pair = new PairChart(tracks);
  const box = { left: EDGE.left, top: EDGE.top, width: 0, height: 0 };
  let at = null, hands = null, apart = [];
  const readout = h('div', { class: 'readout', 'aria-live': 'polite' }), legend = h('div', { class: 'legend' });
  const holder = h('div', { class: 'chart', tabindex: 0, role: 'application',
    'aria-label': 'Memory of both runs on one axis. Arrow keys move along it, plus and minus zoom, 0 shows all, P goes to the new peak, O to the old one.' });
  const small = h('div', { class: 'overview' });
  const axes = [pair.stepped ? ['step', 'by step'] : null, ['time', 'by time'], ['events', 'by event']].filter(Boolean);
  const tools = h('div', { class: 'tools' }, choice('Axis', axes, pair.axis, (value) => { at = null; pair.setAxis(value); redraw(); }));
  p.body.append(tools, readout, holder, small, legend);
  const main = canvas(holder, () => (window.innerWidth < 700 ? 560 : 760), draw), overview = canvas(small, 44, drawOverview);
  main.setAttribute('aria-hidden', 'true');
  p.note(pair.stepped ? 'By step, like steps and phases stand above each other, whatever time they took.' : '');

  const shown = () => stackOrder().filter((k) => app.shown[k]);
  const redraw = () => { main.redraw(); overview.redraw(); readOut(); };
  const below = () => (pair.axis === 'step' ? 26 : 40); /* pixels for step numbers, and for times or events */
  const pixels = () => Math.max(1, Math.round(box.width * (window.devicePixelRatio || 1)));
  const valuesOf = (columns, track, kinds) => Float64Array.from(columns.best, (i, c) => (columns.only ? columns.only[c] : i < 0 ? 0 : sumOf(track.points[i], kinds)));

  /* The points that are drawn at x: each run's highest in that column, or null. */
  function pointsAt(x) {
    const width = Math.max(1, Math.round(box.width || 1)), [from, to] = pair.view;
    const column = Math.max(0, Math.min(width - 1, Math.floor((x - from) / (to - from) * width)));
    return pair.charts.map((c) => { const i = c.columns(width, shown()).best[column]; return i < 0 ? null : c.track.points[i]; });
  }

  function highest(values) {
    let most = 1;
    for (const v of values) for (const n of v) most = Math.max(most, n);
    return most * 1.14;
  }

  function draw(g, width, height) {
    box.width = width - EDGE.left - EDGE.right;
    const kinds = shown(), columns = pair.charts.map((c) => c.columns(pixels(), kinds, window.devicePixelRatio));
    const values = columns.map((c, i) => valuesOf(c, tracks[i], kinds)), top = highest(values), part = (height - below()) / 4, labels = new Labels(g, { left: box.left, top: 0, width: box.width, height });
    const area = (i) => ({ left: box.left, top: i * part + EDGE.top, width: box.width, height: part - EDGE.top - EDGE.strip - 4 });
    box.height = height - below() - EDGE.top;
    g.clearRect(0, 0, width, height);
    for (let i = 0; i < 3; i++) drawGrid(g, area(i), top);
    g.save();
    g.beginPath();
    g.rect(box.left, 0, box.width, height);
    g.clip();
    drawBetween(g, values, area(0), top);
    drawLine(g, values[0], area(0), top, css('--old'), []);
    drawLine(g, values[1], area(0), top, css('--new'), []);
    pair.charts.forEach((c, i) => {
      drawStack(g, c, kinds, columns[i], area(i + 1), top);
      drawPhases(g, c, strip(area(i + 1)), doc, labels);
      drawMarks(g, c, area(i + 1), labels);
      drawLine(g, values[1 - i], area(i + 1), top, css(1 - i ? '--new' : '--old'), [2, 3]);
    });
    drawDifference(g, columns, values, area(3), labels);
    const longer = tracks[0].steps.items.length > tracks[1].steps.items.length ? 0 : 1;
    drawSteps(g, pair.charts[longer], { left: box.left, top: EDGE.top, width: box.width, height: box.height - EDGE.strip }, height - below() + 15, labels);
    g.restore();
    drawNames(g, area, top, labels);
    if (pair.axis !== 'step') drawTimes(g, pair.charts[0], box, height - 6);
    if (at !== null) drawAt(g, height);
    labels.draw();
    drawStretch(g, hands.stretch(), box);
  }

  const strip = (a) => ({ left: a.left, top: a.top + a.height + 2, width: a.width, height: EDGE.strip - 2 });
  const screen = (x) => box.left + (x - pair.view[0]) / (pair.view[1] - pair.view[0]) * box.width;

  /* Fills the area between the two lines, in the colour of growth or of shrinking. */
  function drawBetween(g, values, a, top) {
    const n = a.width / values[0].length, y = (v) => a.top + a.height - v / top * a.height;
    g.globalAlpha = 0.22;
    for (const [style, more] of [['--grown', 1], ['--shrunk', -1]]) {
      g.fillStyle = css(style);
      values[0].forEach((before, c) => {
        const after = values[1][c];
        if ((after - before) * more > 0) g.fillRect(a.left + c * n, y(Math.max(before, after)), n, y(Math.min(before, after)) - y(Math.max(before, after)));
      });
    }
    g.globalAlpha = 1;
  }

  /* Draws new minus old around a zero line; nothing where one of them is not running. */
  function drawDifference(g, columns, values, a, labels) {
    const by = values[1].map((v, c) => (columns.every((x) => x.best[c] >= 0) ? v - values[0][c] : 0)), most = by.reduce((m, v) => Math.max(m, v), 0), least = by.reduce((m, v) => Math.min(m, v), 0);
    apart = [most, least];
    const n = a.width / by.length, y = (v) => a.top + (most - v) / Math.max(1, most - least) * a.height;
    by.forEach((v, c) => { g.fillStyle = css(v > 0 ? '--grown' : '--shrunk'); g.fillRect(a.left + c * n, Math.min(y(0), y(v)), n, Math.abs(y(v) - y(0))); });
    g.fillStyle = css('--ink-3');
    g.fillRect(a.left, y(0), a.width, 0.75);
    name(labels, most > least ? 'difference: ' + [[most, 'at most '], [least, 'at least ']].filter(([v]) => v).map(([v, word]) => word + growthText(v)).join(', ') : 'no difference', a, '--ink-2');
  }

  /* Draws each chart's name, with its peak and the peak's phase. */
  function drawNames(g, area, top, labels) {
    SIDES.forEach((side, i) => {
      const t = tracks[i], q = t.points[pointIndex(t.points, t.peak_seq)], x = screen(pair.charts[i].x(q));
      const where = whereText(doc, t, t.peak_seq), text = side + ' peak ' + bytesText(t.peak_bytes) + (where ? ', ' + where : '');
      for (const a of [area(0), area(i + 1)]) {
        if (x < box.left - 1 || x > box.left + box.width + 1 || shown().length < doc.classes.length) continue;
        drawTip(g, x, a.top + a.height - t.peak_bytes / top * a.height, '--' + side, labels);
      }
      name(labels, text, area(i + 1), '--' + side);
    });
    g.font = FONT(11.5, 600);
    ['total:', ...SIDES].reduce((x, word) => {
      labels.add(word, [[x, area(0).top - 9]], { px: 11.5, weight: 600, ink: word === 'total:' ? '--ink-2' : '--' + word });
      return x + g.measureText(word).width + 7;
    }, box.left + 6);
  }

  /* A name above its chart, at the left or where no mark is in the way. */
  function name(labels, text, a, ink) {
    labels.add(text, [0, 0.25, 0.5, 1].map((part) => [a.left + 6 + part * a.width, a.top - 9]), { px: 11.5, weight: 600, ink, room: box.width - 12, must: true });
  }

  function drawAt(g, height) {
    const x = Math.round(screen(at));
    if (x < box.left || x > box.left + box.width) return;
    g.fillStyle = css('--accent');
    g.fillRect(x - 0.5, EDGE.top, 1, height - below() - EDGE.top);
  }

  function drawOverview(g, width, height) {
    const area = { left: EDGE.left, top: 4, width: width - EDGE.left - EDGE.right, height: height - 8 }, view = pair.view, all = pair.all, kinds = shown();
    pair.both((c) => { c.view = all; });
    const values = pair.charts.map((c, i) => valuesOf(c.columns(Math.max(1, Math.round(area.width)), kinds), tracks[i], kinds));
    pair.both((c) => { c.view = view; });
    g.clearRect(0, 0, width, height);
    drawBetween(g, values, area, highest(values));
    values.forEach((v, i) => drawLine(g, v, area, highest(values), css('--' + SIDES[i]), []));
    drawWindow(g, pair, area, height);
  }

  /* Exact bytes of both runs at the position, else at each run's peak. */
  function readOut() {
    const points = at === null ? tracks.map((t) => t.points[pointIndex(t.points, t.peak_seq)]) : pointsAt(at), kinds = shown(), all = kinds.length === doc.classes.length;
    const bytes = points.map((q) => (q ? (all ? q.bytes : sumOf(q, kinds)) : 0));
    const where = points.map((q, i) => (q ? whereText(doc, tracks[i], q.seq) || 'at ' + secondsText(q.ns - tracks[i].first_ns) : 'not running'));
    replace(readout, h('span', {}, at === null ? 'at the peaks' : where[0] === where[1] ? where[0] : ''),
      SIDES.map((side, i) => h('span', { class: 'side ' + side }, side + ' ', h('b', { class: 'num', 'data-bytes': bytes[i] }, bytesText(bytes[i])), h('span', { class: 'exact num' }, ' ' + exactText(bytes[i])),
        at === null || where[0] !== where[1] ? ' ' + where[i] : '')),
      h('span', {}, 'difference ', h('b', { class: 'num' }, growthText(bytes[1] - bytes[0]))));
    for (const item of legend.children) {
      const k = Number(item.dataset.kind), n = points.map((q) => (q ? q.classes[k] : 0));
      item.querySelector('.num').textContent = bytesText(n[0]) + ' \u2192 ' + bytesText(n[1]);
      item.title = item.dataset.words + ': old ' + exactText(n[0]) + ', new ' + exactText(n[1]) + ', ' + growthText(n[1] - n[0]);
    }
  }

  const peakOf = (i) => pair.charts[i].x(tracks[i].points[pointIndex(tracks[i].points, tracks[i].peak_seq)]);

  function go(x) {
    const [from, to] = pair.view;
    at = x;
    if (x < from || x > to) pair.setView(x - (to - from) / 2, x + (to - from) / 2);
  }

  function key(e) {
    const [from, to] = pair.view, here = at === null ? peakOf(1) : at, jump = (to - from) / 20;
    const moves = { ArrowLeft: () => (e.shiftKey ? here - jump : pair.beside(here, -1)), ArrowRight: () => (e.shiftKey ? here + jump : pair.beside(here, 1)),
      Home: () => pair.all[0], End: () => pair.all[1], p: () => peakOf(1), o: () => peakOf(0) };
    if (!(e.key in moves)) return false;
    go(Math.max(pair.all[0], Math.min(pair.all[1], moves[e.key]())));
    return true;
  }

  const placed = (px) => pair.view[0] + px / box.width * (pair.view[1] - pair.view[0]);
  hands = chartHands({ chart: () => pair, box, holder, main, overview, key, changed: redraw, center: () => (at === null ? undefined : at),
    hover: (px) => { at = px === null ? null : placed(px); }, click: (px) => { at = placed(px); } });
  const button = (text, i) => h('button', { type: 'button', onclick: () => { go(peakOf(i)); redraw(); } }, text);
  tools.append(hands.buttons, h('span', { class: 'moments' }, 'Go to ', button('old peak', 0), button('new peak', 1)));
  classLegend(legend, (k) => tracks.some((t) => t.points.some((q) => q.classes[k])), redraw);
  redraw();
  on('theme', redraw);
  return { pair, pointsAt, apart: () => apart };
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The timeline: chart, strip of phases, overview with a brush, and a legend with the bytes at the pointer. */

function timelinePanel() {
  const p = panel('timeline', 'Timeline');
  const box = { left: EDGE.left, top: EDGE.top, width: 0, height: 0 };
  let chart = null, hands = null, lastTrack = null, charts = new Map(), used = [], by = 'class', band = null, most = 1, pale = false;
  const bands = new Bands(), tip = h('ol', { class: 'stack tip', hidden: true });
  const readout = h('div', { class: 'readout', 'aria-live': 'polite' });
  const legend = h('div', { class: 'legend' });
  const holder = h('div', { class: 'chart', tabindex: 0, role: 'application',
    'aria-label': 'Memory by class over time. Arrow keys move the moment, plus and minus zoom, 0 shows all, P goes to the peak.' });
  const small = h('div', { class: 'overview' });
  const axis = choice('Axis', [['time', 'by time'], ['events', 'by event']], 'time', (value) => { chart.setAxis(value); redraw(); });
  const colours = choice('Colour', [['class', 'classes'], ['block', 'blocks'], ['line', 'lines'], ['module', 'modules'], ...app.doc.tracks.length > 1 ? [['rank', 'ranks']] : []], by, (value) => { by = value; band = null; legend.hidden = by !== 'class'; names.hidden = by !== 'rank'; redraw(); });
  const unused = choice('Show', [['all', 'all bytes'], ['pale', 'not in use']], 'all', (value) => { pale = value === 'pale'; redraw(); });
  unused.title = 'Not in use: before the first recorded use, or after the last';
  const lines = new RankLines(), names = h('div', { class: 'legend', hidden: true }, (app.doc.tracks.length > 1 ? app.doc.tracks : []).map((t) => h('button', { type: 'button', 'data-rank': t.index, onclick: () => chooseTrack(t.index) }, swatch(rankColour(t)), t.label)));
  const tools = h('div', { class: 'tools' }, axis, colours, unused);
  p.body.append(tools, readout, holder, small, legend, names);
  holder.append(tip);
  const main = canvas(holder, () => (window.innerWidth < 700 ? 280 : 360), draw);
  const overview = canvas(small, 44, drawOverview);
  main.setAttribute('aria-hidden', 'true');

  const shown = () => stackOrder().filter((k) => (by !== 'class' || app.shown[k]) && used[k]);
  /* The lines are for all classes. If only some classes are shown, the axis fits those. */
  const whole = () => by !== 'class' || (!chart.pale && used.every((n, k) => !n || app.shown[k]));
  /* Bands and lines of ranks show all bytes, used or not. */
  const offer = () => { if (!chart) return; unused.hidden = by !== 'class' || !app.track.points[0].pale; chart.pale = pale && !unused.hidden; };
  const hasLine = (key) => app.lines[key] && whole() && by !== 'rank';
  const redraw = () => { offer(); main.redraw(); overview.redraw(); readOut(); tell('view'); };
  const center = () => { const i = pointIndex(app.track.points, app.seq), x = chart.x(app.track.points[i]); return x >= chart.view[0] && x <= chart.view[1] ? x : undefined; };

  /* The highest point of the column under the pointer. */
  function pointAt(px) {
    const width = Math.max(1, Math.round(box.width)), columns = chart.columns(width, shown());
    const i = columns.best[Math.min(width - 1, Math.floor(px / box.width * width))];
    return i < 0 ? null : app.track.points[i];
  }

  function highest() {
    const [from, to] = chart.view, kinds = shown();
    let most = 0;
    if (by === 'rank') return lines.find(chart, Math.max(1, Math.round(box.width))) * 1.08;
    for (let i = Math.max(0, chart.before(from)); i < app.track.points.length && chart.x(app.track.points[i]) <= to; i++) {
      const q = app.track.points[i];
      let s = chart.sum(q, kinds);
      if (kinds.length === 1 && q.most && !chart.pale) s = Math.max(s, q.most[kinds[0]]);
      most = Math.max(most, s, hasLine('reserved') ? q.reserved : 0, hasLine('used') ? q.used : 0,
        hasLine('reserved') && q.most ? q.most[app.doc.classes.length] : 0);
    }
    const total = app.track.total_bytes;
    return Math.max(1, hasLine('used') && total && total < most * 1.5 ? Math.max(most, total) * 1.03 : most * 1.08);
  }

  function draw(g, width, height) {
    if (!chart) return;
    box.width = width - EDGE.left - EDGE.right;
    box.height = height - EDGE.top - EDGE.strip - EDGE.steps - 18;
    const top = most = highest(), ratio = window.devicePixelRatio || 1, columns = chart.columns(Math.max(1, Math.round(box.width * ratio)), shown(), ratio);
    const labels = new Labels(g, { left: box.left, top: 0, width: box.width, height });
    const above = { ...box, top: box.top - 1 }; /* so that lines do not cover the stack's top */
    g.clearRect(0, 0, width, height);
    drawGrid(g, box, top);
    g.save();
    g.beginPath();
    g.rect(box.left, 0, box.width, height);
    g.clip();
    if (by === 'rank') lines.draw(g, box, top, labels);
    else if (by === 'class' || !app.ready) drawStack(g, chart, shown(), columns, box, top, true);
    else bands.draw(g, chart, by, columns, box, top);
    drawSteps(g, chart, box, box.top + box.height + EDGE.strip + 11, labels);
    g.globalAlpha = 0.6;
    if (hasLine('reserved')) drawLine(g, columns.reserved, above, top, css('--ink-1'), [], labels);
    if (hasLine('used')) drawLine(g, columns.used, above, top, css('--ink-2'), [2, 3], labels);
    g.globalAlpha = 1;
    g.restore();
    drawPeak(g, top, labels);
    if (hasLine('used')) capacity(g, top, labels);
    drawMarks(g, chart, box, labels);
    drawPhases(g, chart, { left: box.left, top: box.top + box.height + 2, width: box.width, height: EDGE.strip - 2 }, app.doc, labels);
    drawTimes(g, chart, box, height - 5);
    drawMoment(g, top, labels);
    labels.draw();
    if (!app.ready) performance.mark('timeline-drawn');
  }

  function capacity(g, top, labels) {
    const total = app.track.total_bytes;
    if (!total || total > top) return;
    const y = box.top + box.height - total / top * box.height;
    g.fillStyle = css('--alarm');
    g.fillRect(box.left, y, box.width, 1);
    labels.line(box.left, y, box.width, 1);
    labels.add('the device: ' + bytesText(total), [0.01, 0.3, 0.6, 1].flatMap((part) => [[box.left + part * box.width, y + 11], [box.left + part * box.width, y - 9]]), { px: 10.5, ink: '--alarm' });
  }

  const inView = (x) => x >= box.left - 0.5 && x <= box.left + box.width + 0.5;
  const screen = (point) => box.left + (chart.x(point) - chart.view[0]) / (chart.view[1] - chart.view[0]) * box.width;
  const level = (point, top) => box.top + box.height * (1 - chart.sum(point, shown()) / top);

  /* Marks the peak, with its bytes. */
  function drawPeak(g, top, labels) {
    const q = app.track.points[pointIndex(app.track.points, app.track.peak_seq)], x = screen(q), y = level(q, top), text = 'peak ' + bytesText(q.bytes);
    if (!whole() || !inView(x)) return;
    drawTip(g, x, y, '--ink-1', labels);
    g.font = FONT(11, 600);
    const wide = g.measureText(text).width, sides = [x + 10, x - 10 - wide].filter((left) => left >= box.left && left + wide <= box.left + box.width);
    labels.add(text, [-7, -14, -21, 10, 26].flatMap((down) => sides.map((left) => [left, y + down])), { px: 11, weight: 600, ink: '--ink-1' });
  }

  /* Draws the selected moment and the one under the pointer: a pale line over the chart, solid above it. */
  function drawMoment(g, top, labels) {
    const line = (point, style, knob) => {
      const x = screen(point);
      if (!inView(x)) return;
      g.fillStyle = css(style);
      g.globalAlpha = 0.4;
      g.fillRect(Math.round(x) - 0.5, box.top, 1, box.height + EDGE.strip);
      labels.line(Math.round(x) - 0.5, box.top, 1, box.height + EDGE.strip);
      g.globalAlpha = 1;
      g.fillRect(Math.round(x) - 0.5, box.top, 1, Math.max(0, level(point, top) - box.top - 10));
      if (!knob) return;
      g.beginPath();
      g.arc(Math.round(x), box.top + box.height + EDGE.strip + 1, 3, 0, 7);
      g.fill();
    };
    if (app.hover) line(app.hover, '--ink-3', false);
    if (app.mark) line(app.track.points[pointIndex(app.track.points, app.mark)], '--ink-1', true);
    line(app.track.points[pointIndex(app.track.points, app.seq)], '--accent', true);
    drawStretch(g, hands.stretch(), box);
  }

  function drawOverview(g, width, height) {
    if (!chart) return;
    const whole = new Chart(app.track), area = { left: EDGE.left, top: 4, width: width - EDGE.left - EDGE.right, height: height - 8 };
    whole.axis = chart.axis;
    whole.pale = chart.pale;
    whole.reset();
    const columns = whole.columns(Math.max(1, Math.round(area.width)), shown());
    let top = 1;
    for (const q of app.track.points) top = Math.max(top, whole.sum(q, shown()));
    g.clearRect(0, 0, width, height);
    g.globalAlpha = chart.isWhole() ? 0.55 : 0.8;
    drawStack(g, whole, shown(), columns, area, top, true);
    g.globalAlpha = 1;
    drawWindow(g, chart, area, height);
  }

  /* Fills the legend and the line above the chart for the point under the pointer, else for the moment. */
  function readOut() {
    const t = app.track, p0 = app.hover || t.points[pointIndex(t.points, app.seq)];
    if (!p0) return;
    const where = whereText(app.doc, t, p0.seq), peak = p0.seq === t.peak_seq ? 'the peak' : '';
    replace(readout,
      h('b', { class: 'num' }, bytesText(p0.bytes)), h('span', { class: 'exact num' }, exactText(p0.bytes)),
      h('span', {}, 'at ' + secondsText(p0.ns - t.first_ns) + ', event ' + countText(p0.seq)),
      h('span', {}, [where, peak].filter(Boolean).join(' \u2014 ')),
      t.framework ? line('reserved', 'reserved ', p0.reserved) : null, line('used', 'device ', p0.used));
    if (p0.pale) readout.append(h('span', { class: 'unused', title: unused.title }, 'not in use ', h('b', { class: 'num' }, bytesText(p0.pale.reduce((a, b) => a + b, 0)))));
    if (band) readout.append(h('b', { class: 'band' }, band.t ? band.t.label : bytesText(band.b.size) + ' ' + band.name));
    for (const item of legend.children) {
      const k = Number(item.dataset.kind), n = chart.bytes(p0, k);
      item.querySelector('.num').textContent = n ? bytesText(n) : '\u2013';
      item.title = item.dataset.words + ': ' + exactText(n) + ', ' + shareText(n, p0.bytes);
    }
  }

  /* Shows the band under the pointer, with its allocation's stack. */
  function showBand(px, py) {
    band = px === null || by === 'class' || !app.ready ? null : (by === 'rank' ? lines : bands).at(px / box.width, (box.top + box.height - py) / box.height * most);
    tip.hidden = !band || by === 'rank';
    if (tip.hidden) return;
    const frames = framesOf(app.doc, band.b.origin.node).filter((f) => f.bits & FRAME.python && !(f.bits & FRAME.plumbing)).reverse();
    replace(tip, h('li', {}, h('b', {}, bytesText(band.b.size) + ', ' + app.doc.classes[stretchAt(band.b, app.hover ? app.hover.seq : app.seq).evidence.category].words)), (frames.length ? frames.slice(0, 12) : [{ fn: originText(band.b.origin) }]).map((f) => h('li', {}, frameText({ ...f, module: '' }))));
    tip.style.left = Math.min(box.left + px + 14, Math.max(0, holder.clientWidth - tip.offsetWidth)) + 'px';
    tip.style.top = py + 14 + 'px';
  }

  function line(key, words, bytes) {
    return h('button', { type: 'button', class: 'line-' + key, 'aria-pressed': app.lines[key], title: 'Show or hide this line',
      onclick: () => { app.lines[key] = !app.lines[key]; redraw(); } }, words, h('b', { class: 'num' }, bytesText(bytes)));
  }

  /* A line far above all blocks would make them too flat, so it is off until it is clicked. */
  function chooseLines() {
    const most = (key) => app.track.points.reduce((m, q) => Math.max(m, q[key]), 0), blocks = most('bytes');
    app.lines = { reserved: most('reserved') < 3 * blocks, used: most('used') < 3 * blocks };
  }

  function buildLegend() {
    used = new Array(app.doc.classes.length).fill(0);
    for (const q of app.track.points) q.classes.forEach((n, k) => { used[k] = Math.max(used[k], n); });
    classLegend(legend, (k) => used[k], redraw);
  }

  function buildMoments() {
    const t = app.track, list = tools.querySelector('.moments'), ooms = t.moments.filter((m) => m.name === 'oom');
    const button = (text, seq) => h('button', { type: 'button', onclick: () => chooseMoment(seq) }, text);
    replace(list, 'Go to ', button('peak', t.peak_seq),
      ooms.map((m, i) => button(ooms.length > 1 ? 'out of memory ' + (i + 1) : 'out of memory', m.seq)), button('end', t.last_seq));
    p.note(t.curve.group === 1 ? 'Every one of ' + countText(t.curve.changes) + ' changes is shown.'
      : 'Each point is exact; between two, ' + countText(t.curve.group) + ' changes at a time are shown by their highest, lowest and last.');
  }

  /* Keys that move the moment. */
  function key(e) {
    if (e.key === 'm') return markMoment();
    const points = app.track.points, i = pointIndex(points, app.seq), jump = e.shiftKey ? 20 : 1;
    const moves = { ArrowLeft: i - jump, ArrowRight: i + jump, Home: 0, End: points.length - 1, p: pointIndex(points, app.track.peak_seq) };
    if (!(e.key in moves)) return false;
    const q = points[Math.max(0, Math.min(points.length - 1, moves[e.key]))];
    app.hover = null; /* the readout follows the key, not the pointer */
    chooseMoment(q.seq);
    follow(q);
    return true;
  }

  /* Marks the first of two moments. The filter then shows blocks allocated since and still alive. */
  function markMoment() {
    app.mark = app.mark === app.seq ? 0 : app.seq;
    setFilter('age', app.mark ? 'mark' : '0');
    redraw();
    return true;
  }

  function follow(q) {
    const x = chart.x(q), [from, to] = chart.view;
    if (x < from || x > to) chart.setView(x - (to - from) / 2, x + (to - from) / 2);
  }

  hands = chartHands({ chart: () => chart, box, holder, main, overview, center, key, changed: redraw,
    hover: (px, py) => { app.hover = px === null ? null : pointAt(px); showBand(px, py); },
    click: (px) => { const q = pointAt(px), b = band && band.b; if (band && band.t) return chooseTrack(band.t.index); if (q) chooseMoment(q.seq); if (b && isAlive(b, app.seq)) chooseBlock(b); } });
  tools.append(hands.buttons, h('button', { type: 'button', class: 'plain', title: 'Then choose a later moment: the blocks made in between that are still there (M)', onclick: markMoment }, 'Mark this moment'), h('span', { class: 'moments' }));
  on('track', () => {
    app.hover = band = null;
    app.mark = 0;
    p.show(!app.track.state);
    if (!charts.has(app.track)) charts.set(app.track, new Chart(app.track));
    chart = charts.get(app.track);
    if (app.ready) livesOf(app.doc, app.track);
    axis.show(chart.axis);
    if (lastTrack !== app.track) chooseLines();
    lastTrack = app.track;
    buildLegend();
    buildMoments();
    redraw();
  }, true);
  on('moment', redraw, true);
  on('theme', redraw);
  const look = (names, zoom, show) => {
    const [name, from, to] = (zoom || chart.usual).split(/[:-]/);
    app.shown = app.doc.classes.map((c) => !names || names.includes(c.name));
    if (!shown().length) app.shown.fill(true);
    chart.axis = name === 'events' ? 'events' : 'time';
    pale = show === 'pale';
    unused.show(pale ? 'pale' : 'all');
    chart.reset();
    if (Number(from) < Number(to)) chart.setView(Number(from), Number(to));
    axis.show(chart.axis);
    buildLegend();
    redraw();
  };
  /* The state for a link: the classes if not all are shown, and axis and view if they are not the initial ones. */
  const state = () => [whole() ? '' : shown().map((k) => app.doc.classes[k].name).join(),
    chart.isWhole() ? (chart.axis === chart.usual ? '' : chart.axis) : chart.axis + ':' + chart.view.map(Math.round).join('-'), pale ? 'pale' : ''];
  return { look, state, drawn: () => ({ app, bands, chart, lines }) };
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The page of a run: head, panels in their order. */

function momentPanel() {
  const p = panel('moment', 'Blocks');
  const tabs = [['blocks', 'Blocks'], ['flame', 'Flame graph'], ['segments', 'Segments'], ['events', 'Events']], parts = {};
  const show = (name) => { for (const [key] of tabs) parts[key].hidden = key !== name; events(); };
  const main = h('div', { class: 'main' }), split = h('div', { class: 'split' }, main);
  for (const [key] of tabs) main.append(parts[key] = h('div', { class: 'tab ' + key }));
  const views = choice('View', tabs, 'blocks', show);
  app.showTab = (name) => { views.show(name); show(name); };
  p.body.append(h('div', { class: 'tools' }, views, h('b', { id: 'moment-bytes' }), h('span', { id: 'moment-where' })), filterBar(), split);
  blocksTable(parts.blocks);
  app.flame = flamePanel(parts.flame);
  segmentsPanel(parts.segments);
  blockCard(split);
  const events = eventsPanel(parts.events);
  show('blocks');
  on('track', () => { views.querySelector('[value=events]').hidden = app.track.state; });
  on('moment', () => {
    const m = moment(), bytes = document.getElementById('moment-bytes');
    bytes.textContent = bytesText(m.bytes);
    bytes.dataset.bytes = m.bytes;
    p.rename(app.track.state ? 'Blocks' : 'Blocks at ' + secondsText(m.ns - app.track.first_ns));
    document.getElementById('moment-where').textContent = app.track.state ? 'a state at one moment' : 'event ' + countText(m.seq) +
      (whereText(app.doc, app.track, m.seq) ? ' \u2014 ' + whereText(app.doc, app.track, m.seq) : '') + (m.seq === app.track.peak_seq ? ' \u2014 the peak' : '');
  });
}

function factsPanel() {
  const p = panel('run', 'Recording');
  on('track', () => {
    const t = app.track, d = app.doc;
    const left = [...t.notes.map((note) => 'The snapshot: ' + note + '.'),
      t.state ? null : t.curve.group > 1 ? 'The timeline keeps every peak: of ' + countText(t.curve.group) + ' changes at a time the highest, the lowest and the last moment, each exact.' : 'The timeline has every change.',
      t.lives.left_out ? countText(t.lives.count) + ' of ' + countText(t.lives.count + t.lives.left_out) + ' blocks are listed: all that lived at the peak, at the end, when memory ran out and at the peaks of the first steps; of the others those that held most for longest. The rest is in the sums of its class' + (t.points[0].pale ? ', drawn as if it were in use.' : '.') : 'Every block is listed.',
      d.cut_texts ? plural(d.cut_texts, 'long name') + ' cut.' : null, d.cut_nodes ? plural(d.cut_nodes, 'frame') + ' of stacks left out.' : null,
      thinnedText(t), t.marks_left_out ? plural(t.marks_left_out, 'mark') + ' left out.' : null, t.segments.left_out ? plural(t.segments.left_out, 'segment') + ' left out.' : null,
      d.redacted ? 'Paths, names of files, arguments and host names were left out on purpose.' : null].filter(Boolean);
    replace(p.body, h('dl', { class: 'facts' }, [['file', t.file], ...t.facts, ['events', countText(t.events)], ['allocations', countText(t.allocs)], ['frees', countText(t.frees)],
      ...(t.state ? [] : [['lasted', secondsText(t.last_ns - t.first_ns)]])].map(([k, v]) => h('div', { class: String(v).length > 22 ? 'long-fact' : null }, h('dt', {}, k), h('dd', {}, v)))), h('ul', { class: 'note' }, left.map((x) => h('li', {}, x))),
    h('p', { class: 'note' }, 'Made by gpumemtrace ' + d.tool + '.'));
  });
}

function headLine() {
  const t = app.track, fact = (name) => factOf(t, name), commit = fact('commit'), steps = t.steps_done;
  document.getElementById('command').textContent = fact('command') || t.file;
  document.getElementById('summary').textContent = [steps ? plural(steps, 'step') + ' in ' + secondsText(t.last_ns - t.first_ns) : t.state ? 'a state at one moment' : secondsText(t.last_ns - t.first_ns),
    fact('source'), commit ? 'commit ' + commit.slice(0, 7) : null, fact('torch') ? 'torch ' + fact('torch') : null, fact('device'), app.doc.tracks.length > 1 ? t.label : null].filter(Boolean).join('  \u00b7  ');
}

function start() {
  app.doc = readFirst();
  app.shown = app.doc.classes.map(() => true);
  const main = app.doc.tracks.reduce((a, b) => (b.peak_bytes > a.peak_bytes ? b : a));
  on('track', headLine, true);
  summaryPanel();
  ranksPanel();
  peakPanel();
  app.timeline = timelinePanel();
  oomPanel();
  momentPanel();
  stepsPanel();
  leaksPanel();
  accountPanel();
  factsPanel();
  themeSwitch();
  keysHelp();
  chooseTrack(main.index);
  document.addEventListener('DOMContentLoaded', () => requestAnimationFrame(() => setTimeout(finish, 0)));
}

/* Called after the first picture: reads the rest of the page and shows the panels that need it. */
function finish() {
  readRest(app.doc);
  app.ready = true;
  tell('track');
  tell('moment');
  linkState(app.timeline);
  window.gpumemtrace = { app, Chart, EDGE, flame: app.flame, timeline: app.timeline, chooseMoment, chooseTrack, chooseBlock, moment, readFirst, evidenceText, livesOf: () => livesOf(app.doc, app.track) };
  performance.mark('ready');
  document.documentElement.dataset.ready = 'yes';
}

start();

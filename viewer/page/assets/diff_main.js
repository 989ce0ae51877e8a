/* SPDX-License-Identifier: Apache-2.0 */
/* The page of a comparison: panels in their order. */

function recordingsPanel(doc) {
  const p = panel('run', 'Recordings');
  const names = [...new Set(doc.tracks.flatMap((t) => t.facts.map(([name]) => name)))];
  const left = [
    ...doc.tracks.map((t, i) => (t.curve.group > 1 ? 'The timeline of ' + SIDES[i] + ' keeps every peak: of ' + countText(t.curve.group) + ' changes at a time the highest, the lowest and the last moment, each exact.' : null)),
    doc.cut_texts ? plural(doc.cut_texts, 'long name') + ' cut.' : null,
    ...doc.tracks.map((t, i) => (t.dropped ? plural(t.dropped, 'event') + ' of ' + SIDES[i] + ' were lost while recording; figures may be off by them.' : null)),
    ...doc.tracks.map(thinnedText), doc.redacted ? 'Paths, names of files, arguments and host names were left out on purpose.' : null].filter(Boolean);
  p.body.append(table([{ title: 'fact' }, { title: 'old', class: 'side' }, { title: 'new', class: 'side' }],
    [['file', ...doc.tracks.map((t) => t.file)], ...names.map((n) => [n, ...doc.tracks.map((t) => factOf(t, n))]),
      ['events', ...doc.tracks.map((t) => countText(t.events))], ['lasted', ...doc.tracks.map((t) => secondsText(t.last_ns - t.first_ns))]], { class: 'facts-table' }),
  h('ul', { class: 'note' }, left.map((x) => h('li', {}, x))), h('p', { class: 'note' }, 'Made by gpumemtrace ' + doc.tool + '.'));
}

function startDiff() {
  const doc = app.doc = readFirst();
  app.finding = 0;
  app.shown = doc.classes.map(() => true);
  readHead(doc);
  diffHead(doc);
  themeSwitch();
  keysHelp();
  const findings = findingsPanel(doc);
  performance.mark('findings-shown');
  document.addEventListener('DOMContentLoaded', () => requestAnimationFrame(() => setTimeout(() => showDiff(doc, findings), 0)));
}

/* Shows the comparison, which the second document has. */
function showDiff(doc, findings) {
  readDiff(doc, readRest(doc).diff);
  app.ready = true;
  findings();
  const timeline = diffTimelinePanel(doc), flame = diffFlamePanel(doc);
  classesPanel(doc);
  phasesPanel(doc);
  modulesPanel(doc);
  linesPanel(doc);
  recordingsPanel(doc);
  window.gpumemtrace = { app, timeline, flame, readFirst };
  performance.mark('ready');
  document.documentElement.dataset.ready = 'yes';
}

startDiff();

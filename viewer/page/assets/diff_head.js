/* SPDX-License-Identifier: Apache-2.0 */
/* The main answer: by how much the peak changed, why, and which two runs these are. */

function diffHead(doc) {
  const [a, b] = doc.tracks;
  document.getElementById('command').textContent = a.file + ' \u2192 ' + b.file;
  document.getElementById('summary').textContent = doc.diff.headline + '.';
}

function findingsPanel(doc) {
  const p = panel('findings', 'What changed'), d = doc.diff, [a, b] = doc.tracks;
  const delta = b.peak_bytes - a.peak_bytes;
  const MOST = 8, list = h('ol', { class: 'findings' });
  let buttons = [];

  function choose(i) {
    app.finding = app.finding === i ? 0 : i;
    tell('finding');
    if (app.finding) document.getElementById('flame').scrollIntoView({ block: 'start' });
  }

  on('finding', () => { for (const x of buttons) x.setAttribute('aria-pressed', Number(x.value) === app.finding); });

  function item(f, i) {
    const more = f.new > f.old, shows = f.kind !== 'moved' && d.weights.some((w) => w.finding === i + 1);
    const button = shows ? h('button', { type: 'button', class: 'plain', value: i + 1, 'aria-pressed': false, title: 'Show only this in the flame graph', onclick: () => choose(i + 1) }, 'in the flame graph') : null;
    if (button) buttons.push(button);
    return h('li', { 'data-kind': f.kind, hidden: i >= MOST }, h('span', { class: 'kind ' + (f.kind === 'moved' ? '' : more ? 'up' : 'down') }, f.kind), h('span', { class: 'text' }, f.text), button);
  }

  /* Called before the paths are read, and again afterwards, then with the buttons that show them. */
  function show() {
    buttons = [];
    replace(list, d.findings.map(item));
    replace(p.body, ...parts());
  }

  const parts = () => [
    h('p', { class: 'headline' }, h('b', { class: 'num', id: 'delta', 'data-bytes': delta }, delta ? growthText(delta) : 'no difference'),
      h('span', {}, delta ? [percentText(a.peak_bytes, b.peak_bytes), ' at the peak: ', bytesText(a.peak_bytes), ' \u2192 ', bytesText(b.peak_bytes)].join('') : 'at the peak: ' + bytesText(b.peak_bytes) + ' in both runs')),
    d.not_compared ? h('p', { class: 'note', id: 'not-compared' }, d.not_compared) : null,
    d.findings.length ? list : d.not_compared ? null : h('p', {}, 'Nothing differs.'),
    d.findings.length > MOST ? h('button', { type: 'button', class: 'plain', onclick: (e) => { for (const x of list.children) x.hidden = false; e.target.remove(); } }, 'Show ' + plural(d.findings.length - MOST, 'smaller finding')) : null,
    d.findings_left_out ? h('p', { class: 'note' }, plural(d.findings_left_out, 'finding') + ' still smaller left out.') : null,
    sidesTable(doc)];
  show();
  return show;
}

/* The two runs, and what else differs between them. */
function sidesTable(doc) {
  const d = doc.diff;
  const row = (side, i) => {
    const t = doc.tracks[i], steps = t.steps_done;
    return [h('b', {}, side), t.file, commitOf(t), h('span', { class: 'num', 'data-bytes': t.peak_bytes }, bytesText(t.peak_bytes)), t.peak_text || whereText(doc, t, t.peak_seq), countText(steps), factOf(t, 'command')];
  };
  return h('div', {}, table([{ title: 'run' }, { title: 'file' }, { title: 'commit' }, { title: 'peak', right: true }, { title: 'where', class: 'wide' }, { title: 'steps', right: true, class: 'wide-only' }, { title: 'command', class: 'wide' }], SIDES.map(row), { class: 'sides' }),
    d.besides.length ? h('p', { class: 'note' }, 'Besides the program: ' + d.besides.map((x) => x.what + ' ' + (x.old || 'none') + ' \u2192 ' + (x.new || 'none')).join('; ') + '.') : null);
}

/* The moments that the flame graph and the tables compare. */
function comparedText(doc) {
  const d = doc.diff, where = (side, i) => whereText(doc, doc.tracks[i], d[side].seq) || 'event ' + countText(d[side].seq);
  const peaks = SIDES.every((side, i) => d[side].seq === doc.tracks[i].peak_seq);
  if (peaks) return 'at the peak of each run';
  return (d.below_peak ? 'below the peaks, where they differ most: ' : 'at the higher of the two peaks and the like moment of the other run: ') +
    'old ' + bytesText(d.old.bytes) + ' in ' + where('old', 0) + ', new ' + bytesText(d.new.bytes) + ' in ' + where('new', 1);
}

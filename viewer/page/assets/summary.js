/* SPDX-License-Identifier: Apache-2.0 */
/* The findings that the tool's `report` prints first. Each links to its moment and its line. */

const findingsList = (all, link) => (all.length ? h('ol', { class: 'findings' }, all.map((f) => h('li', { 'data-kind': f.kind }, h('span', { class: 'kind' }, f.bytes ? bytesText(f.bytes) : ''),
  h('div', { class: 'text' }, f.text, f.action ? h('p', { class: 'next' }, 'Next: ', h(f.action.startsWith('gpumemtrace ') ? 'code' : 'span', {}, f.action)) : null, link(f))))) : h('p', {}, 'Nothing stands out.'));

function summaryPanel() {
  const p = panel('findings', 'What stands out');
  /* Out of memory links to no line: other lines hold the memory than the one whose request failed. */
  const line = (f) => (f.kind !== 'out_of_memory' && (f.fn || f.file) ? originText(f) : '');

  function open(f) {
    if (!app.ready) return;
    chooseMoment(f.seq);
    showOnly(line(f).toLowerCase());
  }

  const link = (t, f) => h('a', { href: '#moment', onclick: () => open(f) }, 'Go to ' + secondsText(f.time_ns - t.first_ns) + (line(f) ? ', ' + line(f) : ''));
  const toRank = (f) => h('a', { href: '#peak', onclick: () => chooseTrack(f.track.index) }, 'Go to ' + f.track.label);
  on('track', () => {
    const t = app.track, others = oddOnes().slice(0, 2);
    if (app.doc.tracks.length > 1) p.note(t.label);
    replace(p.body, findingsList([...others, ...t.summary].sort((a, b) => b.bytes - a.bytes).slice(0, 5), (f) => (f.track ? toRank(f) : f.seq ? link(t, f) : null)));
  }, true);
}

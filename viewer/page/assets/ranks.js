/* SPDX-License-Identifier: Apache-2.0 */
/* Several ranks or devices: a small chart of each on one scale, and the outliers, as in `report`. */

/* The class in which a track's peak differs most from the median's, and the bytes, as in the report of the ranks. */
function difference(t) {
  const at = (x) => x.moments.find((m) => m.name === 'peak').classes, sign = t.peak_bytes < app.doc.median ? -1 : 1;
  const far = app.doc.classes.map((c, k) => ({ k, by: at(t)[k] - at(app.doc.tracks[app.doc.middle])[k] }));
  return far.reduce((a, b) => (b.by * sign > a.by * sign ? b : a));
}

const isOdd = (t) => app.doc.strays.includes(t.index);
const farBy = (t) => Math.abs(t.peak_bytes - app.doc.median);

/* The outliers, the furthest first, each in a sentence. */
function oddOnes() {
  const words = (t, by) => ' peaks ' + bytesText(farBy(t)) + (t.peak_bytes > app.doc.median ? ' above' : ' below') + ' the median of all ' + app.doc.tracks.length + (by.by ? ', mostly in ' + app.doc.classes[by.k].words : '');
  return app.doc.tracks.filter(isOdd).sort((a, b) => farBy(b) - farBy(a)).map((t) => ({ kind: 'ranks', bytes: farBy(t), track: t, text: t.label + words(t, difference(t)) + '.', words: words(t, difference(t)) }));
}

function ranksTable(tracks) {
  const middle = app.doc.median, most = Math.max(...tracks.map((t) => t.peak_bytes));
  const row = (t) => {
    const by = difference(t);
    return { props: { class: 'link' + (isOdd(t) ? ' odd' : ''), 'data-rank': t.index, onclick: () => chooseTrack(t.index) },
      cells: [t.label, bytesText(t.peak_bytes), bar(t.peak_bytes, most), growthText(t.peak_bytes - middle),
        by.by ? h('span', {}, swatch(colourOf(by.k)), app.doc.classes[by.k].words + ' ' + growthText(by.by)) : '', bytesText(t.peak_reserved_bytes), t.peak_text] };
  };
  return table([{ title: 'rank' }, { title: 'peak', right: true }, { title: '', class: 'bars' }, { title: 'vs. median', right: true }, { title: 'most of the difference', class: 'wide' },
    { title: 'reserved', right: true, class: 'wide-only' }, { title: 'the peak', class: 'wide-only' }], tracks.map(row), { class: 'ranks' });
}

function ranksPanel() {
  const tracks = app.doc.tracks;
  if (tracks.length < 2) return;
  const p = panel('ranks', 'Ranks'), odd = oddOnes(), most = Math.max(...tracks.map((t) => t.peak_bytes));
  const dead = tracks.filter((t) => t.first_oom_ns).sort((a, b) => a.first_oom_ns + a.wall - b.first_oom_ns - b.wall)[0];
  p.body.append(h('p', { class: 'headline small' }, odd.length ? odd.slice(0, 3).map((o) => h('span', {}, h('b', {}, o.track.label), o.words))
      .concat(odd.length > 3 ? h('span', {}, 'and ' + countText(odd.length - 3) + ' more') : [])
    : h('span', {}, 'All ' + tracks.length + ' peak within ' + fixed(100 * (most - Math.min(...tracks.map((t) => t.peak_bytes))) / most, 1) + ' % of each other.'),
  dead ? h('b', { class: 'alarm' }, dead.label + ' was the first to run out of memory.') : null));
  const grid = h('div', { class: 'multiples' });
  p.body.append(grid);
  for (const t of tracks) {
    const b = h('button', { type: 'button', class: isOdd(t) ? 'odd' : '', onclick: () => chooseTrack(t.index) }, h('span', { class: 'name' }, t.label), h('span', { class: 'num' }, bytesText(t.peak_bytes)));
    grid.append(b);
    const holder = h('span', { class: 'mini' });
    b.append(holder);
    const c = canvas(holder, 54, (g, width, height) => {
      const chart = new Chart(t), order = stackOrder();
      g.clearRect(0, 0, width, height);
      drawStack(g, chart, order, chart.columns(Math.max(1, Math.round(width)), order), { left: 0, top: 2, width, height: height - 3 }, most);
    });
    on('theme', c.redraw);
    on('track', () => b.setAttribute('aria-pressed', app.track === t), true);
  }
  const rows = ranksTable(tracks);
  p.body.append(h('div', { class: 'scroll tall', tabindex: 0, role: 'region', 'aria-label': 'Ranks as a table' }, rows));
  on('track', () => { for (const r of rows.querySelectorAll('[data-rank]')) r.classList.toggle('on', Number(r.dataset.rank) === app.track.index); }, true);
}

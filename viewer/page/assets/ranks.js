/* SPDX-License-Identifier: Apache-2.0 */
/* Several ranks or devices: a small chart each, on one scale, and the one that is not like the others. */

function median(values) {
  const v = values.slice().sort((a, b) => a - b), n = v.length >> 1;
  return v.length % 2 ? v[n] : (v[n - 1] + v[n]) / 2;
}

/* The peak that is furthest from the median, if that is much: over 2 % and over three times the usual distance. */
function outlier(tracks) {
  if (tracks.length < 3) return null;
  const middle = median(tracks.map((t) => t.peak_bytes)), far = (t) => Math.abs(t.peak_bytes - middle);
  const worst = tracks.reduce((a, b) => (far(b) > far(a) ? b : a)), usual = median(tracks.map(far));
  return far(worst) > middle * 0.02 && far(worst) > 3 * usual ? { track: worst, by: worst.peak_bytes - middle } : null;
}

/* The class in which a track's peak is furthest from the usual one, and by how much. */
function difference(t, tracks) {
  const at = (x) => x.moments.find((m) => m.name === 'peak').classes;
  const far = app.doc.classes.map((c, k) => ({ k, by: at(t)[k] - median(tracks.map((x) => at(x)[k])) }));
  return far.reduce((a, b) => (Math.abs(b.by) > Math.abs(a.by) ? b : a));
}

function ranksTable(tracks, odd) {
  const middle = median(tracks.map((t) => t.peak_bytes)), most = Math.max(...tracks.map((t) => t.peak_bytes));
  const row = (t) => {
    const by = difference(t, tracks);
    return { props: { class: 'link' + (odd && odd.track === t ? ' odd' : ''), 'data-rank': t.index, onclick: () => chooseTrack(t.index) },
      cells: [t.label, bytesText(t.peak_bytes), bar(t.peak_bytes, most), growthText(t.peak_bytes - middle),
        by.by ? h('span', {}, swatch(colourOf(by.k)), app.doc.classes[by.k].words + ' ' + growthText(by.by)) : '', bytesText(t.peak_reserved_bytes), t.peak_text] };
  };
  return table([{ title: '' }, { title: 'peak', right: true }, { title: '', class: 'bars' }, { title: 'vs. median', right: true }, { title: 'most of the difference', class: 'wide' },
    { title: 'reserved', right: true, class: 'wide-only' }, { title: 'the peak', class: 'wide-only' }], tracks.map(row), { class: 'ranks' });
}

function ranksPanel() {
  const tracks = app.doc.tracks;
  if (tracks.length < 2) return;
  const mostly = (t) => { const by = difference(t, tracks); return by.by ? ', mostly in ' + app.doc.classes[by.k].words : ''; };
  const p = panel('ranks', 'Ranks'), odd = outlier(tracks), most = Math.max(...tracks.map((t) => t.peak_bytes));
  const dead = tracks.filter((t) => t.first_oom_ns).sort((a, b) => a.first_oom_ns + a.wall - b.first_oom_ns - b.wall)[0];
  p.body.append(h('p', { class: 'headline small' }, odd ? [h('b', {}, odd.track.label), h('span', {}, 'peaks ' + bytesText(Math.abs(odd.by)) + (odd.by > 0 ? ' above' : ' below') + ' the median of all ' + tracks.length + mostly(odd.track))]
    : h('span', {}, 'All ' + tracks.length + ' peak within ' + fixed(100 * (most - Math.min(...tracks.map((t) => t.peak_bytes))) / most, 1) + ' % of each other.'),
  dead ? h('b', { class: 'alarm' }, dead.label + ' was the first to run out of memory.') : null));
  const grid = h('div', { class: 'multiples' });
  p.body.append(grid);
  for (const t of tracks) {
    const b = h('button', { type: 'button', class: odd && odd.track === t ? 'odd' : '', onclick: () => chooseTrack(t.index) }, h('span', { class: 'name' }, t.label), h('span', { class: 'num' }, bytesText(t.peak_bytes)));
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
  const rows = ranksTable(tracks, odd);
  p.body.append(rows);
  on('track', () => { for (const r of rows.querySelectorAll('[data-rank]')) r.classList.toggle('on', Number(r.dataset.rank) === app.track.index); }, true);
}

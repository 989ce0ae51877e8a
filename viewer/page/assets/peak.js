/* SPDX-License-Identifier: Apache-2.0 */
/* The first answer: the peak, its moment, and what held the memory. Same figures as the tool's `report`. */

function peakPanel() {
  const p = panel('peak', app.doc.tracks[0].state ? 'State' : 'Peak');

  function classRows(m) {
    const holders = holdersOf(m);
    return m.classes.map((n, k) => ({ k, n, count: m.blocks.filter((e) => e.category === k).length, first: holders.find((x) => x.category === k) })).filter((r) => r.n).sort((a, b) => b.n - a.n || a.k - b.k);
  }

  function classTable(t, m) {
    const columns = [{ title: 'class' }, { title: t.state ? 'bytes' : 'at peak', right: true }, { title: 'share', right: true }, { title: '', class: 'bars' },
      { title: 'blocks', right: true, class: 'wide-only', keep: true }, { title: 'mostly allocated at', class: 'wide', keep: true }, { title: 'bytes there', right: true, class: 'wide-only', keep: true }];
    const rows = classRows(m).map((r) => ({
      props: { 'data-class': app.doc.classes[r.k].name, 'data-bytes': r.n, class: 'link', onclick: () => { chooseMoment(t.peak_seq); setFilter('category', String(r.k)); document.getElementById('moment').scrollIntoView(); } },
      cells: [h('span', {}, swatch(colourOf(r.k)), app.doc.classes[r.k].words), bytesText(r.n), shareText(r.n, m.bytes), bar(r.n, m.bytes, colourOf(r.k)),
        app.ready ? countText(r.count) + (m.complete ? '' : ' listed') : '', r.first ? r.first.words : '', r.first ? bytesText(r.first.bytes) : ''],
    }));
    const reserved = m.point ? m.point.reserved : 0, used = m.point ? m.point.used : 0, extra = [];
    const apart = t.apart.reduce((n, a) => n + a.bytes, 0);
    if (t.unused && t.unused.bytes) extra.push(['not used again', t.unused.bytes, 'kept after the last use, mostly allocated at ' + originText(t.unused)]);
    if (t.self_reported && reserved > m.bytes) extra.push(['cached, not in use', Math.max(0, reserved - m.bytes - apart), 'reserved ' + bytesText(reserved)]);
    for (const a of t.apart) extra.push([a.what, a.bytes, a.note]);
    if (t.context) extra.push(['context and modules', t.context, 'in use, but not by recorded allocations']);
    if (t.framework && used > reserved + t.context) extra.push(['other libraries', used - reserved - t.context, 'not by the framework']);
    const more = extra.map(([words, n, note]) => ({ props: { class: 'more' }, cells: [words, bytesText(n), '', '', '', note, ''] }));
    return table(columns, rows.concat(more), { class: 'classes' });
  }

  function show() {
    const t = app.track, m = app.ready ? momentAt(app.doc, t, t.peak_seq) : sumsAt(app.doc, t, t.peak_seq), used = m.point ? m.point.used : 0;
    const total = t.total_bytes ? ' of ' + bytesText(t.total_bytes) : '';
    const strip = h('div', { class: 'strip', role: 'img', 'aria-label': 'Shares of the classes' },
      stackOrder().filter((k) => m.classes[k]).map((k) => h('span', { style: { 'flex-grow': m.classes[k], background: colourOf(k) }, title: app.doc.classes[k].words + ': ' + bytesText(m.classes[k]) })));
    const where = t.state ? '' : t.peak_text || whereText(app.doc, t, t.peak_seq);
    replace(p.body,
      h('p', { class: 'headline' }, h('b', { class: 'num', id: 'peak-bytes', 'data-bytes': t.peak_bytes }, bytesText(t.peak_bytes)), h('span', {}, total + (t.state ? ' a state at one moment' : ' at ' + secondsText(t.peak_time_ns - t.first_ns))),
        where ? h('span', {}, where) : null),
      strip, classTable(t, m),
      h('p', { class: 'note' }, t.state ? 'The snapshot has no trace: whether there was ever more is not known.' : 'Still allocated at the end: ' + bytesText(t.end_bytes) + '.',
        m.point && t.peak_reserved_bytes > 1.1 * m.point.reserved ? ' Reserved at most: ' + bytesText(t.peak_reserved_bytes) + '.' : null,
        t.retries ? ' The cache was emptied to make room ' + plural(t.retries, 'time') + ', which stalls.' : null,
        t.left_out ? ' ' + plural(t.left_out, 'event') + ' of blocks that came and went were left out to bound the recording: peaks by step and what was alive afterwards are exact.' : null));
  }
  on('track', show, true);
}

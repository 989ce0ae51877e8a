/* SPDX-License-Identifier: Apache-2.0 */
/* Out of memory: the request, the free memory, and the holders of the rest. */

function oomPanel() {
  const p = panel('oom', 'Out of memory');

  function one(t, mark, number, count) {
    const m = momentAt(app.doc, t, mark.seq), point = m.point, segments = t.segments.items.length ? fillSegments(segmentsAt(t, mark.seq), m.blocks) : [];
    const hole = segments.reduce((s, x) => Math.max(s, x.hole), 0), answer = t.oom && t.oom.seq === mark.seq ? t.oom : null;
    const facts = answer && answer.asked !== answer.block ? [['requested', bytesText(answer.asked)], [answer.request, bytesText(answer.block)]] : [['requested', bytesText(mark.asked)]];
    facts.push(['allocated', bytesText(m.bytes)]);
    const apart = answer ? answer.apart : [];
    if (point && t.self_reported) facts.push(['cached, not in use', bytesText(Math.max(0, point.reserved - point.bytes - apart.reduce((n, a) => n + a.bytes, 0)))]);
    for (const a of apart) facts.push([a.what, bytesText(a.bytes) + ' ' + a.note]);
    if (m.complete && segments.length) facts.push(['largest hole in it', bytesText(hole)]);
    if (point && t.total_bytes) facts.push(['free on the device', bytesText(Math.max(0, t.total_bytes - point.used))]);
    const frame = framesOf(app.doc, mark.stack).reverse().find((f) => f.bits & FRAME.python && !(f.bits & FRAME.plumbing));
    return h('article', {},
      h('h3', {}, (count > 1 ? 'No. ' + number + ', at ' : 'At ') + secondsText(mark.time_ns - t.first_ns) + ', ' + (whereText(app.doc, t, mark.seq) || 'event ' + countText(mark.seq)),
        frame ? h('span', { class: 'where' }, ' ' + frame.fn + ' ' + baseName(frame.file) + ':' + frame.line) : null),
      answer ? h('p', { class: 'why' }, h('b', {}, 'Cause: ' + answer.cause.replaceAll('_', ' ') + '.')) : null,
      h('dl', { class: 'figures' }, facts.map(([k, v]) => h('div', {}, h('dt', {}, k), h('dd', { class: 'num' }, v)))),
      table([{ title: 'class' }, { title: 'bytes', right: true }, { title: 'blocks', right: true }, { title: 'allocated at', class: 'wide' }],
        holdersOf(m).slice(0, 10).map((l) => ({ props: { class: 'link', onclick: () => { chooseMoment(mark.seq, true); chooseBlock(l.entry.block); } },
          cells: [h('span', {}, swatch(colourOf(l.category)), app.doc.classes[l.category].words), bytesText(l.bytes), countText(l.blocks), l.words] }))),
      answer && answer.remedies.length ? remedies(answer) : null);
  }

  function remedies(oom) {
    return [h('h4', {}, 'What would have made room'), table([{ title: 'change' }, { title: 'saves', right: true }, { title: 'enough' }, { title: 'source', class: 'wide' }],
      oom.remedies.map((r) => [r.what, r.saves ? (r.atMost ? 'up to ' : '') + bytesText(r.saves) : '', r.enough ? 'yes' : '', r.how]), { class: 'remedies' })];
  }

  function show() {
    const t = app.track, marks = t.marks.filter((m) => m.kind === 'oom');
    p.show(marks.length > 0);
    if (!marks.length) return;
    const kept = marks.length > 4 ? [...marks.slice(0, 3), marks[marks.length - 1]] : marks;
    p.note(marks.length > 4 ? countText(t.ooms) + ' times; the first three and the last' : '');
    replace(p.body, kept.map((m) => one(t, m, marks.indexOf(m) + 1, marks.length)));
  }
  on('track', show);
}

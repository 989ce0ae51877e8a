/* SPDX-License-Identifier: Apache-2.0 */
/* Growth from step to step, as in the tool's `leaks`. */

function leaksPanel() {
  const p = panel('leaks', 'Growth');

  function open(t, line) {
    chooseMoment(line.latest);
    showOnly(originText(line).toLowerCase());
    chooseBlock(livesOf(app.doc, t).find((b) => b.seq === line.latest) || null);
    document.getElementById('moment').scrollIntoView();
  }

  function row(t, l) {
    const since = l.blocks ? bytesText(l.bytes) + ' in ' + plural(l.blocks, 'block') + ' since step ' + l.first_step : '';
    return { props: l.blocks ? { class: 'link', onclick: () => open(t, l) } : {},
      cells: [h('span', {}, swatch(colourOf(l.category)), app.doc.classes[l.category].kept), bytesText(l.bytes_per_step), since, originText(l)] };
  }

  function show() {
    const t = app.track, l = t.leaks;
    p.show(Boolean(l && l.from_step !== l.to_step));
    if (!l) return;
    const between = 'from step ' + l.from_step + ' to step ' + l.to_step, more = l.bytes_per_step > 0;
    replace(p.body,
      h('p', { class: 'headline small', 'data-bytes': l.bytes_per_step }, h('b', { class: 'num' + (more ? ' grew' : '') }, more ? bytesText(l.bytes_per_step) : 'none'),
        h('span', {}, (more ? 'more a step on average, ' : 'no line holds more with each step, ') + between)),
      l.lines.length ? table([{ title: 'class' }, { title: 'each step', right: true }, { title: 'stayed so far', class: 'wide-only' }, { title: 'allocated at', class: 'wide' }], l.lines.map((x) => row(t, x))) : null,
      l.left_out ? h('p', { class: 'note' }, plural(l.left_out, 'smaller line') + ' more.') : null);
  }
  on('track', show);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* What grows from step to step: the exact growth of the whole, and the lines whose blocks stay. */

function growthPerStep(t) {
  const steps = t.steps.items.filter((s) => s.kind === 'step' && s.ended);
  const late = steps.slice(Math.min(2, Math.max(0, steps.length - 2)));
  if (late.length < 2) return null;
  return { steps: late, bytes: (late[late.length - 1].end - late[0].end) / (late.length - 1) };
}

/* Of each line: bytes born in a step that are still there when the last of them ends, for each such step. */
function growingLines(doc, t, growth) {
  const last = growth.steps[growth.steps.length - 1], lines = new Map(), first = growth.steps[0].number;
  for (const b of livesOf(doc, t)) {
    if (!isAlive(b, last.lastSeq)) continue;
    const step = stepAt(t, b.seq);
    if (step.kind !== 'step' || step.number < first || step.number > last.number) continue;
    const key = originText(b.origin) + b.origin.file;
    const line = lines.get(key) || { origin: b.origin, category: stretchAt(b, last.lastSeq).evidence.category, bytes: 0, blocks: 0, steps: new Set(), block: b };
    line.bytes += b.size;
    line.blocks++;
    line.steps.add(step.number);
    lines.set(key, line);
  }
  return [...lines.values()].filter((l) => l.steps.size >= Math.max(2, (growth.steps.length - 1) / 2)).sort((a, b) => b.bytes - a.bytes);
}

function leaksPanel() {
  const p = panel('leaks', 'Growth');
  function show() {
    const t = app.track, growth = growthPerStep(t);
    p.show(growth !== null);
    if (!growth) return;
    const lines = growth.bytes > 0 ? growingLines(app.doc, t, growth) : [], n = growth.steps.length;
    const between = 'between the end of step ' + growth.steps[0].number + ' and of step ' + growth.steps[n - 1].number;
    replace(p.body,
      h('p', { class: 'headline small' }, h('b', { class: 'num' + (growth.bytes > 0 ? ' grew' : '') }, growth.bytes > 0 ? bytesText(Math.round(growth.bytes)) : growth.bytes < 0 ? 'shrinks' : 'none'),
        h('span', {}, growth.bytes > 0 ? 'stay with every step, ' + between : between)),
      lines.length ? table([{ title: 'class' }, { title: 'each step', right: true }, { title: 'blocks', right: true }, { title: 'held by', class: 'wide' }],
        lines.slice(0, 12).map((l) => ({ props: { class: 'link', onclick: () => { chooseMoment(growth.steps[n - 1].lastSeq); chooseBlock(l.block); document.getElementById('moment').scrollIntoView(); } },
          cells: [h('span', {}, swatch(colourOf(l.category)), app.doc.classes[l.category].words), bytesText(Math.round(l.bytes / l.steps.size)), countText(l.blocks), originText(l.origin)] }))) : null,
      growth.bytes > 0 && t.lives.left_out ? h('p', { class: 'note' }, 'The smallest blocks are not listed on this page; the growth above counts them.') : null);
  }
  on('track', show);
}

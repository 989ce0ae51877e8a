/* SPDX-License-Identifier: Apache-2.0 */
/* The training steps: the peak of each, what stayed, and where the peak was. */

function stepsPanel() {
  const p = panel('steps', 'Steps');
  let all = false;
  const MOST = 12;

  function shownRows(items) {
    if (all || items.length <= MOST) return items.map((s) => s);
    const best = items.reduce((b, s) => (s.peak > b.peak ? s : b), items[0]), out = [];
    let hidden = 0;
    items.forEach((s, i) => {
      if (i < 6 || i >= items.length - 4 || s === best) {
        if (hidden) out.push({ hidden });
        hidden = 0;
        out.push(s);
      } else hidden++;
    });
    return out;
  }

  function row(t, s, most) {
    if (s.hidden) return { cells: ['', '', '', '', '', '', h('button', { type: 'button', class: 'plain', onclick: () => { all = true; show(); } }, plural(s.hidden, 'more step'))] };
    const name = s.kind === 'step' ? String(s.number) + (s.ended ? '' : ' (not ended)') : s.kind === 'before' ? 'before them' : 'after them';
    const grew = h('span', { class: s.growth > 0 && s.kind === 'step' && s.number > 1 ? 'grew' : '' }, growthText(s.growth));
    return { props: { class: 'link', 'data-step': s.kind === 'step' ? s.number : s.kind, onclick: () => chooseMoment(s.peakSeq, true) },
      cells: [name, bar(s.peak, most), bytesText(s.peak), bytesText(s.end), grew, secondsText(s.lastNs - s.firstNs), (s.kind === 'step' ? app.doc.phases[s.phase] + (s.what ? ', ' : '') : '') + s.what] };
  }

  function show() {
    const t = app.track, items = t.steps.items, most = items.reduce((m, s) => Math.max(m, s.peak), 1), real = items.filter((s) => s.kind === 'step').length;
    p.show(real > 0);
    p.note(plural(real + t.steps.left_out, 'step') + '; ' + t.steps.basis + (t.steps.left_out ? '; ' + countText(t.steps.left_out) + ' of them, spread evenly, are left out here' : ''));
    replace(p.body, table([{ title: 'step', right: true }, { title: '', class: 'bars' }, { title: 'peak', right: true }, { title: 'at its end', right: true }, { title: 'growth', right: true },
      { title: 'lasted', right: true, class: 'wide-only' }, { title: 'the peak in it', class: 'wide' }], shownRows(items).map((s) => row(t, s, most))));
  }
  on('track', () => { all = false; show(); });
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The events around the moment: allocations and frees, with the line of each. */

/* Allocations and frees of the listed blocks, in order. */
function eventsOf(t) {
  return t.changes = t.changes || livesOf(app.doc, t).flatMap((b) => [{ seq: b.seq, ns: b.ns, b }].concat(b.endSeq ? { seq: b.endSeq, ns: b.endNs, b, freed: true } : [])).sort((x, y) => x.seq - y.seq);
}

/* The line that freed a block, or the phase if there is no stack. */
function freedText(b) {
  const f = framesOf(app.doc, b.endNode).filter((x) => x.bits & FRAME.python && !(x.bits & FRAME.plumbing)).pop();
  return f ? 'freed by ' + originText(f) : ['freed', whereText(app.doc, b.track, b.endSeq)].filter(Boolean).join(': ');
}

function eventsPanel(parent) {
  const list = h('div', { class: 'scroll tall', tabindex: 0, role: 'region', 'aria-label': 'Events around the moment; arrow keys go to the next one and the one before' });
  const columns = [{ title: 'event', right: true }, { title: 'from here', right: true }, { title: 'change', right: true }, { title: 'class' }, { title: 'by', class: 'wide' }, { title: 'allocated by', class: 'wide-only' }];
  const category = (e) => stretchAt(e.b, e.seq).evidence.category, fits = (e) => matches({ block: e.b, category: category(e), size: e.b.size });
  parent.append(list);

  const go = (e) => { chooseMoment(e.seq); chooseBlock(e.b); list.focus({ preventScroll: true }); };

  const rowOf = (e) => ({ props: { class: 'link' + (e.seq === app.seq ? ' on' : ''), 'data-seq': e.seq, 'aria-current': e.seq === app.seq ? 'true' : null, onclick: () => go(e) },
    cells: [countText(e.seq), (e.ns < moment().ns ? '-' : '+') + secondsText(Math.abs(e.ns - moment().ns)), growthText(e.freed ? -e.b.size : e.b.size), h('span', {}, swatch(colourOf(category(e))), app.doc.classes[category(e)].words),
      e.freed ? freedText(e.b) : 'allocated by ' + originText(e.b.origin), e.freed ? originText(e.b.origin) : ''] });

  /* The nearest events on one side of the moment, the nearest first. */
  function near(step, most) {
    const all = eventsOf(app.track), found = [];
    let i = countFirst(all, (e) => (step > 0 ? e.seq <= app.seq : e.seq < app.seq)) - (step < 0);
    for (; all[i] && found.length < most; i += step) if (fits(all[i])) found.push(all[i]);
    return found;
  }

  function show() {
    if (parent.hidden || !app.ready) return;
    const now = eventsOf(app.track).filter((e) => e.seq === app.seq && fits(e)), rows = [...near(-1, 12).reverse(), ...now, ...near(1, 12)];
    replace(list, rows.length ? table(columns, rows.map(rowOf), { class: 'events' }) : h('p', { class: 'note' }, 'None.'),
      app.track.lives.left_out ? h('p', { class: 'note' }, 'Of the blocks that are listed; ' + plural(app.track.lives.left_out, 'smaller one') + ' came and went in between.') : null);
    const on = list.querySelector('.on');
    if (on) list.scrollTop = on.offsetTop - list.clientHeight / 2;
  }

  list.addEventListener('keydown', (e) => {
    const [to] = e.key === 'ArrowDown' ? near(1, 1) : e.key === 'ArrowUp' ? near(-1, 1) : [];
    if (!to) return;
    e.preventDefault();
    go(to);
  });
  on('moment', show);
  on('filter', show);
  return show;
}

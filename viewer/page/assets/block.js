/* SPDX-License-Identifier: Apache-2.0 */
/* One block: its life, its classes with their evidence, and the stacks of its allocation and free. */

function blockCard(parent) {
  const card = h('aside', { class: 'card', 'aria-label': 'Block', 'aria-live': 'polite' });
  parent.append(card);

  function stack(title, node) {
    const list = h('ol', { class: 'stack' });
    const frames = framesOf(app.doc, node).reverse();
    let native = null;
    for (const f of frames) {
      if (f.bits & FRAME.python) {
        native = null;
        list.append(h('li', { class: f.bits & FRAME.plumbing ? 'plumbing' : 'own' }, h('span', { class: 'fn' }, f.fn), ' ',
          h('span', { class: 'file', title: f.file }, baseName(f.file) + ':' + f.line)));
        continue;
      }
      if (!native) {
        const inner = h('ol', { class: 'stack' }), words = h('summary', {});
        native = { count: 0, words, inner };
        list.append(h('li', { class: 'native' }, h('details', {}, words, inner)));
      }
      native.words.textContent = plural(++native.count, 'native frame');
      native.inner.append(h('li', {}, h('span', { class: 'fn' }, f.fn || '?'), ' ', h('span', { class: 'file', title: f.file || f.module }, f.file ? baseName(f.file) + ':' + f.line : baseName(f.module))));
    }
    if (!frames.length) list.append(h('li', { class: 'plumbing' }, 'no stack was recorded'));
    return [h('h4', {}, title), list];
  }

  function life(b) {
    const t = b.track, from = b.ns - t.first_ns, to = (b.endSeq ? b.endNs : t.last_ns) - t.first_ns;
    const byEvent = new Chart(t).axis === 'events', share = (seq, ns) => 100 * (byEvent ? seq / t.last_seq : (ns - t.first_ns) / (t.last_ns - t.first_ns || 1));
    const pieces = b.stretches.map((s, i) => {
      const next = b.stretches[i + 1], start = share(s.seq, i ? timeOf(t, s.seq) : b.ns);
      const end = next ? share(next.seq, timeOf(t, next.seq)) : b.endSeq ? share(b.endSeq, b.endNs) : 100;
      return h('span', { style: { left: Math.min(99.6, start) + '%', width: Math.max(0.4, end - start) + '%', background: colourOf(s.evidence.category) },
        title: app.doc.classes[s.evidence.category].words });
    });
    for (const [from, to] of b.pale) {
      const left = share(from, from === b.seq ? b.ns : b.uses.last.ns), right = from === b.seq ? share(to, b.uses.first.ns) : b.endSeq ? share(b.endSeq, b.endNs) : 100;
      if (from < Infinity) pieces.push(h('span', { class: 'pale', style: { left: left + '%', width: Math.max(0, right - left) + '%' }, title: 'not in use' }));
    }
    const now = h('i', { style: { left: share(app.seq, moment().ns) + '%' } });
    return [h('div', { class: 'life' }, pieces, now),
      h('p', { class: 'lifetext' }, 'Allocated at ', h('b', {}, secondsText(from)), ' (' + (whereText(app.doc, t, b.seq) || 'event ' + countText(b.seq)) + '), ',
        b.endSeq ? ['freed at ', h('b', {}, secondsText(to)), ' (' + (whereText(app.doc, t, b.endSeq) || 'event ' + countText(b.endSeq)) + '), lived ' + secondsText(to - from)]
          : 'never freed', '.'), b.uses ? usesText(b) : null].filter(Boolean);
  }

  function usesText(b) {
    const u = b.uses, at = (x) => [h('b', {}, secondsText(x.ns - b.track.first_ns)), ' by ' + x.by];
    return h('p', { class: 'lifetext uses' }, !u.whole ? 'Used, first at ' : u.count === 1 ? 'Used once, at ' : ['Used ', h('b', {}, countText(u.count)), ' times, first at '], at(u.first), u.first.seq === u.last.seq ? null : [', last at ', ...at(u.last)],
      u.over ? ' and not again' : null, '.', u.pause ? [' Longest pause ', h('b', {}, secondsText(u.pause)), ', from ' + secondsText(u.pauseFrom - b.track.first_ns) + ' between ' + u.pauseBy + ' and ' + u.resumedBy + '.'] : null);
  }

  const timeOf = (t, seq) => t.points[pointIndex(t.points, seq)].ns;

  function verdicts(b) {
    return b.stretches.map((s, i) => {
      const e = s.evidence, now = stretchAt(b, app.seq) === s;
      return h('div', { class: 'verdict' + (now ? ' now' : '') },
        h('p', {}, swatch(colourOf(e.category)), h('b', {}, app.doc.classes[e.category].words), h('span', { class: 'sure' }, (app.doc.classes[e.category].name === 'unknown' ? '' : (e.confidence === 'guess' ? 'a guess, ' : e.confidence + ', ')) + 'rule ' + e.rule),
          b.stretches.length > 1 ? h('span', { class: 'sure' }, i ? 'from ' + secondsText(timeOf(b.track, s.seq) - b.track.first_ns) : 'at first') : null),
        h('p', { class: 'evidence' }, evidenceText(b, e)));
    });
  }

  function show() {
    const b = app.block;
    card.hidden = !b;
    parent.classList.toggle('with-card', Boolean(b));
    if (!b) return;
    const o = b.origin;
    replace(card,
      h('button', { type: 'button', class: 'close', 'aria-label': 'Close', onclick: () => chooseBlock(null) }, '\u00d7'),
      h('h3', {}, h('span', { class: 'num' }, bytesText(b.size)), ' ', h('code', {}, '0x' + b.addr.toString(16))),
      h('p', { class: 'where', title: o.file || null }, originText(o), ' ', copyPlace(o)),
      h('p', { class: 'note' }, exactText(b.size) + ', stream ' + b.context.stream + ', thread ' + (b.context.thread || b.context.tid)),
      b.track.state ? null : life(b), verdicts(b), stack('Allocated', b.origin.node), b.endSeq ? stack('Freed', b.endNode) : null);
  }

  on('block', show);
  on('moment', () => app.block && show());
  show();
}

const evidenceText = (b, e) => e.place && !b.track.state ? e.because + e.when + '. It was allocated at ' + secondsText(b.ns - b.track.first_ns) + e.place : e.because + e.when;

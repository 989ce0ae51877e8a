/* SPDX-License-Identifier: Apache-2.0 */
/* The differential flame graph: the call paths of both runs as one tree. A frame is as wide as the larger of its two sums
 * (or as the chosen one), and coloured by the share that is new or gone. */

function diffFlamePanel(doc) {
  const p = panel('flame', 'Flame graph'), d = doc.diff;
  let widths = 'both', when = 'compared', root = null, text = '';
  const words = h('div', { class: 'readout' });
  const search = h('input', { type: 'search', placeholder: 'Search functions, files, classes', 'aria-label': 'Search', oninput: () => { text = search.value.toLowerCase(); view.changed(); } });
  const only = h('span', { hidden: true });
  const view = new FlameView({ label: 'Differential flame graph of bytes by call path.', weight: (n) => n[widths], words: labelOf, paint, changed: say, ink: (n) => (found(n) ? '#16181a' : css('--flame-ink')) });
  const moments = d.peak_weights.length ? choice('Compared at', [['compared', 'like moments'], ['peaks', 'each peak']], when, (v) => { when = v; app.finding = 0; tell('finding'); }) : null;
  p.body.append(h('div', { class: 'tools' }, moments, choice('Widths', [['both', 'the larger'], ['old', 'old'], ['new', 'new']], widths, (v) => { widths = v; view.show(root); }),
    h('button', { type: 'button', class: 'plain', onclick: () => view.enter(root) }, 'all'), only, scale()), h('div', { class: 'filters' }, search), words);
  view.open(p.body);

  /* The colours from gone to new, with words. */
  function scale() {
    const steps = [['gone', -1], ['shrunk', -0.4], ['same', 0], ['grown', 0.4], ['new', 1]];
    return h('span', { class: 'scale' }, steps.map(([word, part]) => h('span', {}, h('i', { class: 'swatch', style: { '--colour': mixOf(part) }, 'aria-hidden': 'true' }), word)));
  }

  /* part: -1 = all gone, 1 = all new. */
  function mixOf(part) {
    const share = Math.round(part ? 25 + 75 * Math.abs(part) : 0);
    return 'color-mix(in srgb, var(' + (part < 0 ? '--shrunk' : '--grown') + ') ' + share + '%, var(--flame-same))';
  }

  function build() {
    const nodes = d.nodes.map((frame) => ({ frame, parent: null, old: 0, new: 0, both: 0, blocksOld: 0, blocksNew: 0, categories: new Set(), children: new Map() }));
    if (app.finding) when = 'compared';
    if (moments) moments.show(when);
    p.note(when === 'peaks' ? 'each run at its own peak' : comparedText(doc));
    for (const w of when === 'peaks' ? d.peak_weights : d.weights) {
      if (app.finding && w.finding !== app.finding) continue;
      for (let i = w.node; ; i = d.nodes[i].caller) {
        const n = nodes[i];
        n.old += w.old;
        n.new += w.new;
        n.both += Math.max(w.old, w.new);
        n.blocksOld += w.blocksOld;
        n.blocksNew += w.blocksNew;
        n.categories.add(w.category);
        if (!i) break;
      }
    }
    nodes.forEach((n, i) => {
      if (!i || !n.both) return;
      n.parent = nodes[n.frame.caller];
      n.parent.children.set(i, n);
    });
    root = nodes[0];
    only.hidden = !app.finding;
    replace(only, h('b', {}, 'finding ' + app.finding + ' alone '), h('button', { type: 'button', class: 'plain', onclick: () => { app.finding = 0; tell('finding'); } }, 'show everything'));
    view.show(root);
  }

  function lineOf(f) {
    if (f.backward) return f.fn + ' (backward)';
    return frameText({ fn: f.fn, file: f.file, line: f.line || f.was, module: '' });
  }

  function labelOf(n) {
    const change = n.new - n.old;
    return lineOf(n.frame) + (change ? '  ' + changeWord(n.old, n.new) + ' ' + growthText(change) : '');
  }

  const found = (n) => text && (lineOf(n.frame) + ' ' + [...n.categories].map((k) => doc.classes[k].words).join(' ')).toLowerCase().includes(text);

  function paint(g, node, x, y, w, tall, past) {
    const part = (node.new - node.old) / Math.max(node.new, node.old, 1);
    g.globalAlpha = past ? 0.35 : 1;
    g.fillStyle = css('--flame-same');
    g.fillRect(x, y, w, tall);
    if (part) {
      g.globalAlpha *= 0.25 + 0.75 * Math.abs(part);
      g.fillStyle = css(part < 0 ? '--shrunk' : '--grown');
      g.fillRect(x, y, w, tall);
    }
    if (!found(node)) return;
    g.globalAlpha = 1;
    g.fillStyle = css('--found');
    g.fillRect(x, y, w, tall);
  }

  function say() {
    const n = view.chosen;
    if (!n) return;
    const f = n.frame, moved = f.line && f.was && f.line !== f.was ? 'was line ' + f.was : '';
    replace(words, h('b', { class: 'frame' }, lineOf(f)), moved ? h('span', {}, moved) : null, h('span', { class: 'word' }, changeWord(n.old, n.new)),
      h('span', {}, 'old ', h('b', { class: 'num' }, bytesText(n.old)), h('span', { class: 'exact' }, ' ' + exactText(n.old))),
      h('span', {}, 'new ', h('b', { class: 'num' }, bytesText(n.new)), h('span', { class: 'exact' }, ' ' + exactText(n.new))),
      h('span', {}, 'difference ', h('b', { class: 'num' }, growthText(n.new - n.old))),
      n.blocksOld === n.blocksNew ? h('span', { class: 'exact' }, plural(n.blocksNew, 'block')) : h('span', { class: 'exact' }, countText(n.blocksOld) + ' \u2192 ' + plural(n.blocksNew, 'block')));
    view.canvas.title = lineOf(f) + ': old ' + exactText(n.old) + ', new ' + exactText(n.new) + ', ' + growthText(n.new - n.old);
  }

  on('finding', build);
  on('theme', () => view.canvas.redraw());
  if (d.weights_left_out) p.body.append(h('p', { class: 'note' }, plural(d.weights_left_out, 'call') + ' beyond the limit of this page stand on the frames that called them.'));
  build();
  return { tree: () => root, view };
}

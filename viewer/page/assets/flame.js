/* SPDX-License-Identifier: Apache-2.0 */
/* Flame graph: widths are bytes at the moment, colours the class with most of them. */

/* The modules of a stack by class (the forward that a module's call leads to), then the line in the innermost. */
function modulesOf(frames) {
  const out = [];
  let called = false, last = null;
  for (const f of frames) {
    if (f.bits & FRAME.call) { called = true; continue; }
    if (!called || !(f.bits & FRAME.forward)) continue;
    const name = f.fn.slice(0, -8);
    out.push({ fn: name.slice(name.lastIndexOf('.') + 1), file: f.file, line: 0, bits: f.bits });
    last = f;
    called = false;
  }
  if (last) out.push(last);
  return out;
}

function flamePanel(parent) {
  let mode = 'python', inverted = false, root = null;
  const words = h('div', { class: 'readout' });
  const view = new FlameView({ label: 'Flame graph of bytes by stack.', weight: (n) => n.bytes, words: (n) => frameText(n.frame), paint, changed: say,
    ink: (n) => (found(n) ? '#16181a' : css('--flame-ink')) });
  parent.append(h('div', { class: 'tools' },
    choice('Frames', [['python', 'Python'], ['native', 'native'], ['both', 'both'], ['module', 'by module']], mode, (v) => { mode = v; build(); }),
    choice('Direction', [['down', 'callers first'], ['up', 'inverted']], 'down', (v) => { inverted = v === 'up'; build(); }),
    h('button', { type: 'button', class: 'plain', onclick: () => view.enter(root) }, 'all')), words);
  view.open(parent);

  /* The frames of a stack in the chosen mode, outermost first. */
  function pathFrames(node) {
    const frames = framesOf(app.doc, node);
    if (mode === 'both') return frames;
    if (mode === 'native') return frames.filter((f) => !(f.bits & FRAME.python));
    const python = frames.filter((f) => f.bits & FRAME.python);
    return mode === 'python' ? python : modulesOf(python);
  }

  function child(node, f, depth) {
    const key = f.fn + '\n' + f.file + '\n' + f.line + '\n' + f.module;
    let c = node.children.get(key);
    if (!c) node.children.set(key, c = { frame: f, parent: node, depth, bytes: 0, blocks: 0, classes: new Float64Array(app.doc.classes.length), children: new Map() });
    return c;
  }

  function add(node, e) {
    node.bytes += e.bytes;
    node.blocks += e.blocks;
    for (let k = 0; k < e.classes.length; k++) node.classes[k] += e.classes[k];
  }

  function build() {
    const kinds = app.doc.classes.length, origins = new Map();
    root = { frame: { fn: 'all' }, parent: null, depth: 0, bytes: 0, blocks: 0, classes: new Float64Array(kinds), children: new Map() };
    for (const e of chosen()) {
      let o = origins.get(e.block.origin);
      if (!o) origins.set(e.block.origin, o = { bytes: 0, blocks: 0, classes: new Float64Array(kinds) });
      o.bytes += e.size;
      o.blocks++;
      o.classes[e.category] += e.size;
    }
    for (const [origin, sums] of origins) {
      let frames = pathFrames(origin.node);
      if (!frames.length || (origin.backward && mode !== 'native'))
        frames = [...frames, { fn: originText(origin), file: '', line: 0, module: '', bits: 0 }];
      if (inverted) frames = frames.slice().reverse();
      let node = root;
      add(root, sums);
      for (const f of frames) {
        node = child(node, f, node.depth + 1);
        add(node, sums);
      }
    }
    if (!filtering()) moment().rest.forEach((n, k) => { if (n > 0) restOf(n, k); });
    view.show(root);
  }

  function restOf(bytes, k) {
    const sums = { bytes, blocks: 0, classes: new Float64Array(app.doc.classes.length) };
    sums.classes[k] = bytes;
    add(root, sums);
    add(child(root, { fn: 'smaller ones, not listed', file: '', line: 0, module: '', bits: 0 }, 1), sums);
  }

  function main(node) {
    let best = 0;
    node.classes.forEach((n, k) => { if (n > node.classes[best]) best = k; });
    return best;
  }

  const found = (node) => filters.text && frameText(node.frame).toLowerCase().includes(filters.text);

  function paint(g, node, x, y, w, tall, past) {
    g.globalAlpha = past ? 0.25 : node === root ? 0.18 : found(node) ? 1 : Number(css('--flame-alpha'));
    g.fillStyle = node === root ? css('--ink-3') : colourOf(main(node));
    g.fillRect(x, y, w, tall);
  }

  function say() {
    const n = view.chosen;
    if (!n) return;
    replace(words, h('b', { class: 'num' }, bytesText(n.bytes)), h('span', {}, shareText(n.bytes, root.bytes)), h('span', { class: 'frame', title: n.frame.file || null }, frameText(n.frame)),
      n.blocks ? h('span', { class: 'exact' }, plural(n.blocks, 'block')) : null,
      n !== root && n.frame.bits ? h('button', { type: 'button', class: 'plain', onclick: () => { showOnly(n.frame.fn.toLowerCase()); app.showTab('blocks'); } }, 'its blocks') : null, copyPlace(n.frame));
  }

  on('moment', build);
  on('filter', build);
  on('theme', () => view.canvas.redraw());
  return { build, tree: () => root };
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes by stack: widths are bytes at the moment, colours the class that most of them are of. */

const FLAME_ROW = 19;

function flamePanel(parent) {
  let mode = 'python', inverted = false, root = null, focus = null, hover = null, cells = [];
  const words = h('div', { class: 'readout' }), holder = h('div', { class: 'flame', tabindex: 0, role: 'application', 'aria-label': 'Flame graph of bytes by stack. A click goes into a frame, Escape comes back.' });
  parent.append(h('div', { class: 'tools' },
    choice('Frames', [['python', 'Python'], ['native', 'native'], ['both', 'both'], ['module', 'by module']], mode, (v) => { mode = v; build(); }),
    choice('Direction', [['down', 'callers first'], ['up', 'inverted']], 'down', (v) => { inverted = v === 'up'; build(); }),
    h('button', { type: 'button', class: 'plain', onclick: () => { focus = root; flame.redraw(); } }, 'all')), words, holder);
  const flame = canvas(holder, () => Math.max(120, (depthOf(focus || root) + pathOf(focus).length + 1) * FLAME_ROW + 4), draw);

  /* The names of a stack, the outermost first. */
  function pathFrames(node) {
    const frames = framesOf(app.doc, node);
    if (mode === 'both') return frames;
    if (mode === 'native') return frames.filter((f) => !(f.bits & FRAME.python));
    const python = frames.filter((f) => f.bits & FRAME.python);
    return mode === 'python' ? python : modulesOf(python);
  }

  /* Classes of modules: the forward that a module's call leads to; then the line in the innermost. */
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
    focus = root;
    hover = null;
    say();
    flame.redraw();
  }

  function restOf(bytes, k) {
    const sums = { bytes, blocks: 0, classes: new Float64Array(app.doc.classes.length) };
    sums.classes[k] = bytes;
    add(root, sums);
    add(child(root, { fn: 'smaller ones, not listed', file: '', line: 0, module: '', bits: 0 }, 1), sums);
  }

  function depthOf(node) {
    if (!node) return 1;
    let most = 0;
    for (const c of node.children.values()) if (c.bytes * 800 > node.bytes) most = Math.max(most, depthOf(c));
    return most + 1;
  }

  function pathOf(node) {
    const path = [];
    for (let n = node && node.parent; n; n = n.parent) path.push(n);
    return path.reverse();
  }

  function main(node) {
    let best = 0;
    node.classes.forEach((n, k) => { if (n > node.classes[best]) best = k; });
    return best;
  }

  function label(f) {
    return f.fn + (f.line ? '  ' + baseName(f.file) + ':' + f.line : !f.file && f.module ? '  ' + baseName(f.module) : '');
  }

  function draw(g, width) {
    cells = [];
    g.clearRect(0, 0, width, 1e5);
    if (!root || !root.bytes) return;
    g.font = FONT(11.5);
    g.textBaseline = 'middle';
    const path = pathOf(focus);
    path.forEach((n, i) => cell(g, n, 0, i, width, true));
    const walk = (node, x, room, row) => {
      cell(g, node, x, row, room, false);
      let left = x;
      for (const c of [...node.children.values()].sort((a, b) => b.bytes - a.bytes)) {
        const w = c.bytes / node.bytes * room;
        if (w >= 0.6) walk(c, left, w, row + 1);
        left += w;
      }
    };
    walk(focus, 0, width, path.length);
  }

  function cell(g, node, x, row, w, past) {
    const y = row * FLAME_ROW, found = filters.text && label(node.frame).toLowerCase().includes(filters.text);
    cells.push({ node, x, y, w });
    g.globalAlpha = past ? 0.25 : node === root ? 0.18 : found ? 1 : Number(css('--flame-alpha'));
    g.fillStyle = node === root ? css('--ink-3') : colourOf(main(node));
    g.fillRect(x, y, Math.max(0.5, w - 0.75), FLAME_ROW - 1);
    g.globalAlpha = 1;
    if (node === hover) {
      g.strokeStyle = css('--ink-1');
      g.strokeRect(x + 0.5, y + 0.5, Math.max(0.5, w - 1.75), FLAME_ROW - 2);
    }
    if (w < 26) return;
    g.fillStyle = found ? '#16181a' : css('--flame-ink');
    g.fillText(clip(g, label(node.frame), w - 9), x + 5, y + FLAME_ROW / 2);
  }

  function say() {
    const n = hover || focus || root;
    if (!n) return;
    replace(words, h('b', { class: 'num' }, bytesText(n.bytes)), h('span', {}, shareText(n.bytes, root.bytes)), h('span', { class: 'frame', title: n.frame.file || null }, label(n.frame)),
      n.blocks ? h('span', { class: 'exact' }, plural(n.blocks, 'block')) : null);
  }

  const under = (e) => {
    const r = flame.getBoundingClientRect(), x = e.clientX - r.left, y = e.clientY - r.top;
    const hit = cells.find((c) => x >= c.x && x < c.x + c.w && y >= c.y && y < c.y + FLAME_ROW);
    return hit ? hit.node : null;
  };
  flame.addEventListener('pointermove', (e) => { const n = under(e); if (n !== hover) { hover = n; say(); flame.redraw(); } });
  flame.addEventListener('pointerleave', () => { hover = null; say(); flame.redraw(); });
  flame.addEventListener('click', (e) => { const n = under(e); if (n) { focus = n; say(); flame.redraw(); } });
  holder.addEventListener('keydown', (e) => {
    if (e.key === 'Escape' && focus && focus.parent) focus = focus.parent;
    else if (e.key === 'ArrowDown' && focus && focus.children.size) focus = [...focus.children.values()].sort((a, b) => b.bytes - a.bytes)[0];
    else if (e.key === 'ArrowUp' && focus && focus.parent) focus = focus.parent;
    else return;
    e.preventDefault();
    hover = null;
    say();
    flame.redraw();
  });
  on('moment', build);
  on('filter', build);
  on('theme', flame.redraw);
  return { build, tree: () => root };
}

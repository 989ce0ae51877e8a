/* SPDX-License-Identifier: Apache-2.0 */
/* A flame graph on a canvas: drawing, zooming into a frame, keys. The caller provides `o`: label (of the holder),
 * weight(node), paint(g, node, x, y, width, height), ink(node), words(node), and changed(), which is called when the chosen
 * node changes. A node has parent and children, a Map. */

const FLAME_ROW = 19;

class FlameView {
  constructor(o) {
    this.o = o;
    this.root = this.focus = this.hover = null;
    this.cells = [];
    this.holder = h('div', { class: 'flame', tabindex: 0, role: 'application', 'aria-label': o.label + ' A click goes into a frame, Escape comes back.' });
  }
  /* Adds the graph to the page. */
  open(parent) {
    parent.append(this.holder);
    this.canvas = canvas(this.holder, () => Math.max(120, (this.depth(this.focus || this.root) + this.path(this.focus).length + 1) * FLAME_ROW + 4), (g, width) => this.draw(g, width));
    this.canvas.addEventListener('pointermove', (e) => { const n = this.under(e); if (n !== this.hover) { this.hover = n; this.changed(); } });
    this.canvas.addEventListener('pointerleave', () => { this.hover = null; this.changed(); });
    this.canvas.addEventListener('click', (e) => { const n = this.under(e); if (n) this.enter(n); });
    this.holder.addEventListener('keydown', (e) => this.key(e));
  }
  show(root) {
    this.root = this.focus = root;
    this.hover = null;
    this.changed();
  }
  enter(node) {
    this.focus = node;
    this.changed();
  }
  changed() {
    this.o.changed();
    this.canvas.redraw();
  }
  /* The node that the readout describes. */
  get chosen() {
    return this.hover || this.focus || this.root;
  }
  sorted(node) {
    return [...node.children.values()].sort((a, b) => this.o.weight(b) - this.o.weight(a));
  }
  depth(node) {
    if (!node) return 1;
    let most = 0;
    for (const c of node.children.values()) if (this.o.weight(c) * 800 > this.o.weight(node)) most = Math.max(most, this.depth(c));
    return most + 1;
  }
  path(node) {
    const path = [];
    for (let n = node && node.parent; n; n = n.parent) path.push(n);
    return path.reverse();
  }
  draw(g, width) {
    this.cells = [];
    g.clearRect(0, 0, width, 1e5);
    if (!this.root || !this.o.weight(this.root)) return;
    g.font = FONT(11.5);
    g.textBaseline = 'middle';
    const path = this.path(this.focus);
    path.forEach((n, i) => this.cell(g, n, 0, i, width, true));
    this.walk(g, this.focus, 0, width, path.length);
  }
  walk(g, node, x, room, row) {
    this.cell(g, node, x, row, room, false);
    let left = x;
    for (const c of this.sorted(node)) {
      const w = this.o.weight(c) / this.o.weight(node) * room;
      if (w >= 0.6) this.walk(g, c, left, w, row + 1);
      left += w;
    }
  }
  cell(g, node, x, row, w, past) {
    const y = row * FLAME_ROW, tall = FLAME_ROW - 1;
    this.cells.push({ node, x, y, w });
    this.o.paint(g, node, x, y, Math.max(0.5, w - 0.75), tall, past);
    g.globalAlpha = 1;
    if (node === this.hover) {
      g.strokeStyle = css('--ink-1');
      g.strokeRect(x + 0.5, y + 0.5, Math.max(0.5, w - 1.75), tall - 1);
    }
    if (w < 26) return;
    g.fillStyle = this.o.ink(node);
    g.fillText(clip(g, this.o.words(node), w - 9), x + 5, y + FLAME_ROW / 2);
  }
  under(e) {
    const r = this.canvas.getBoundingClientRect(), x = e.clientX - r.left, y = e.clientY - r.top;
    const hit = this.cells.find((c) => x >= c.x && x < c.x + c.w && y >= c.y && y < c.y + FLAME_ROW);
    return hit ? hit.node : null;
  }
  /* Keys: up to the caller, down to the widest callee, left and right to siblings. */
  key(e) {
    const f = this.focus, beside = f && f.parent ? this.sorted(f.parent) : [];
    const to = { Escape: f && f.parent, ArrowUp: f && f.parent, ArrowDown: f && this.sorted(f)[0],
      ArrowRight: beside[beside.indexOf(f) + 1], ArrowLeft: beside[beside.indexOf(f) - 1] }[e.key];
    if (!to) return;
    e.preventDefault();
    this.hover = null;
    this.enter(to);
  }
}

/* "Net.forward  model.py:12" */
const frameText = (f) => f.fn + (f.line ? '  ' + baseName(f.file) + ':' + f.line : !f.file && f.module ? '  ' + baseName(f.module) : '');

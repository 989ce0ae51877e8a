/* SPDX-License-Identifier: Apache-2.0 */
/* What a page really draws, as boxes: `pageFaults()` returns a sentence for each label that a line crosses, text outside of its canvas or on another
 * one, cell that is not below its heading, column without a heading or without content, element that leaves the page, link in the browser's blue. */

/* Everything that is drawn on a canvas since it was last cleared, in order. */
const drawn = new Map();

function watchCanvases() {
  const p = CanvasRenderingContext2D.prototype, own = {};
  const put = (g, op) => { if (!drawn.has(g.canvas)) drawn.set(g.canvas, []); drawn.get(g.canvas).push(op); };
  const wrap = (name, before) => { own[name] = p[name]; p[name] = function (...a) { before(this, ...a); return own[name].apply(this, a); }; };
  const paths = new WeakMap(), path = (g) => { if (!paths.has(g)) paths.set(g, { at: null, pieces: [], arcs: [] }); return paths.get(g); };
  const box = (points) => { const x = Math.min(...points.map((q) => q[0])), y = Math.min(...points.map((q) => q[1])); return { x, y, w: Math.max(...points.map((q) => q[0])) - x, h: Math.max(...points.map((q) => q[1])) - y }; };
  wrap('clearRect', (g) => drawn.set(g.canvas, []));
  wrap('fillText', (g, text, x, y) => {
    const m = g.measureText(text), left = x - m.actualBoundingBoxLeft, top = y - m.actualBoundingBoxAscent;
    put(g, { kind: 'text', text, x: left, y: top, w: m.actualBoundingBoxLeft + m.actualBoundingBoxRight, h: m.actualBoundingBoxAscent + m.actualBoundingBoxDescent });
  });
  wrap('fillRect', (g, x, y, w, h) => put(g, { kind: Math.min(Math.abs(w), Math.abs(h)) <= 2 && Math.max(Math.abs(w), Math.abs(h)) >= 12 ? 'line' : g.globalAlpha === 1 ? 'plate' : 'area', x, y, w, h }));
  wrap('beginPath', (g) => paths.set(g, { at: null, pieces: [], arcs: [] }));
  wrap('moveTo', (g, x, y) => { path(g).at = [x, y]; });
  wrap('lineTo', (g, x, y) => { const q = path(g); if (q.at) q.pieces.push([q.at, [x, y]]); q.at = [x, y]; });
  wrap('arc', (g, x, y, r) => path(g).arcs.push({ x: x - r, y: y - r, w: 2 * r, h: 2 * r }));
  wrap('stroke', (g) => { for (const piece of path(g).pieces) put(g, { kind: 'line', piece, ...box(piece) }); });
  wrap('fill', (g) => {
    for (const arc of path(g).arcs) put(g, { kind: 'line', ...arc });
    const points = path(g).pieces.flat(), b = points.length ? box(points) : null;
    if (b && b.w <= 14 && b.h <= 14) put(g, { kind: 'line', ...b }); /* a tip */
  });
}

const meets = (a, b) => a.x < b.x + b.w && b.x < a.x + a.w && a.y < b.y + b.h && b.y < a.y + a.h;
const covers = (a, b) => a.x <= b.x + 0.1 && a.y <= b.y + 0.1 && a.x + a.w >= b.x + b.w - 0.1 && a.y + a.h >= b.y + b.h - 0.1;

/* Whether a line goes through the inside of a box. */
function crosses(line, box) {
  const inner = { x: box.x + 0.5, y: box.y + 0.5, w: box.w - 1, h: box.h - 1 };
  if (!meets({ ...line, w: Math.max(line.w, 0.1), h: Math.max(line.h, 0.1) }, inner)) return false;
  if (!line.piece) return true;
  const [[x1, y1], [x2, y2]] = line.piece, from = Math.max(Math.min(x1, x2), inner.x), to = Math.min(Math.max(x1, x2), inner.x + inner.w);
  if (x1 === x2 || y1 === y2) return true;
  const ys = [from, to].map((x) => y1 + (x - x1) / (x2 - x1) * (y2 - y1));
  return Math.max(...ys) > inner.y && Math.min(...ys) < inner.y + inner.h;
}

function labelFaults() {
  const found = [];
  for (const [canvas, ops] of drawn) {
    if (!canvas.isConnected || !canvas.offsetParent) continue;
    const where = canvas.parentElement.className || 'chart', texts = ops.map((o, i) => ({ ...o, i })).filter((o) => o.kind === 'text' && o.text);
    for (const t of texts) {
      const hidden = (line) => ops.slice(line + 1, t.i).some((o) => o.kind === 'plate' && covers(o, t));
      if (ops.some((o, i) => o.kind === 'line' && crosses(o, t) && (i > t.i || !hidden(i)))) found.push(where + ': a line crosses "' + t.text + '"');
      if (t.x < -0.5 || t.x + t.w > canvas.clientWidth + 0.5 || t.y < -1 || t.y + t.h > canvas.clientHeight + 0.5) found.push(where + ': "' + t.text + '" leaves the canvas');
      for (const u of texts) if (u.i > t.i && meets(t, u)) found.push(where + ': "' + t.text + '" lies on "' + u.text + '"');
    }
  }
  return found;
}

const near = (a, b) => Math.abs(a - b) <= 1;
const seen = (e) => e.getClientRects().length > 0 && e.getBoundingClientRect().width > 0;

function tableFaults(t) {
  const found = [], name = t.className || t.closest('section')?.id, heads = [...t.tHead.rows[0].cells], rows = [...t.tBodies[0].rows], whole = t.getBoundingClientRect();
  heads.forEach((head, i) => {
    const cells = rows.map((r) => r.cells[i]).filter((c) => c && seen(c)), content = rows.map((r) => r.cells[i]).some((c) => c && (c.textContent.trim() || c.querySelector('.bar')));
    if (!content && rows.length) found.push(name + ': nothing in the column "' + head.textContent + '"');
    if (!head.textContent.trim() && cells.some((c) => c.textContent.trim())) found.push(name + ': column ' + i + ' has no heading');
  });
  for (const r of rows) {
    const cells = [...r.cells].map((c, i) => ({ c, b: c.getBoundingClientRect(), head: heads[i] })).filter(({ c }) => seen(c) && !r.classList.contains('section'));
    for (const { c, b, head } of cells) {
      const a = head.getBoundingClientRect();
      if (seen(head) && (!near(a.left, b.left) || !near(a.right, b.right))) found.push(name + ': "' + c.textContent + '" is not below "' + head.textContent + '"');
      if (seen(head) && getComputedStyle(head).textAlign.replace('start', 'left') !== getComputedStyle(c).textAlign.replace('start', 'left')) found.push(name + ': "' + c.textContent + '" is aligned otherwise than "' + head.textContent + '"');
      if (!seen(head) && (b.left < whole.left - 1 || b.right > whole.right + 1)) found.push(name + ': "' + c.textContent + '" leaves its table');
    }
    for (const { c, b } of cells) for (const o of cells) if (o.c !== c && meets({ x: b.x + 1, y: b.y + 1, w: b.width - 2, h: b.height - 2 }, { x: o.b.x, y: o.b.y, w: o.b.width, h: o.b.height })) found.push(name + ': "' + c.textContent + '" lies on "' + o.c.textContent + '"');
    for (const { c } of cells) if (c.scrollWidth > c.clientWidth + 1 && !c.querySelector('.long')) found.push(name + ': "' + c.textContent + '" is wider than its cell');
  }
  return found;
}

/* The table of blocks is made of rows that are placed one by one. */
function rowFaults() {
  const head = document.querySelector('.row.head'), found = [];
  if (!head || !seen(head)) return found;
  for (const r of document.querySelectorAll('.space .row')) for (const c of r.children) {
    const h = head.querySelector('.' + c.classList[0]), a = h && h.getBoundingClientRect(), b = c.getBoundingClientRect();
    if (!seen(c)) continue;
    if (!h || !seen(h) || !near(a.left, b.left) || !near(a.right, b.right)) found.push('blocks: "' + c.textContent + '" is not below its heading');
  }
  return found;
}

function pageFaults() {
  const found = [...labelFaults(), ...[...document.querySelectorAll('table')].filter(seen).flatMap(tableFaults), ...rowFaults()];
  const style = getComputedStyle(document.documentElement), probe = document.createElement('i');
  document.body.append(probe);
  const own = ['--accent', '--ink-2'].map((name) => { probe.style.color = style.getPropertyValue(name); return getComputedStyle(probe).color; });
  probe.remove();
  for (const a of document.querySelectorAll('a')) if (seen(a) && !own.includes(getComputedStyle(a).color)) found.push('the link "' + a.textContent + '" has the colour ' + getComputedStyle(a).color);
  for (const e of document.querySelectorAll('body *')) if (seen(e) && e.getBoundingClientRect().right > innerWidth + 1 && !e.closest('.scroll, nav')) found.push('<' + e.tagName + ' class="' + e.className + '"> leaves the page: ' + e.textContent.slice(0, 40));
  for (const e of document.querySelectorAll('body *')) if (seen(e) && getComputedStyle(e).textDecorationLine.includes('line-through')) found.push('"' + e.textContent + '" is struck through');
  if (document.documentElement.scrollWidth > innerWidth) found.push('the page scrolls sideways');
  return [...new Set(found)];
}

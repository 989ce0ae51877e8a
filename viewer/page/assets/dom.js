/* SPDX-License-Identifier: Apache-2.0 */
/* Builds elements. Texts are set as text, never as markup. */

function h(tag, props, ...children) {
  const e = document.createElement(tag);
  for (const [key, value] of Object.entries(props || {})) {
    const says = key.startsWith('aria-'); /* aria attributes have the value "false", too */
    if (value === null || value === undefined || (value === false && !says)) continue;
    if (key.startsWith('on')) e.addEventListener(key.slice(2), value);
    else if (key === 'class') e.className = value;
    else if (key === 'style') for (const [k, v] of Object.entries(value)) e.style.setProperty(k, v);
    else e.setAttribute(key, value === true && !says ? '' : value);
  }
  e.append(...children.flat().filter((c) => c !== null && c !== undefined && c !== false).map((c) => (c instanceof Node ? c : String(c))));
  return e;
}

function replace(parent, ...children) {
  parent.replaceChildren(...children.flat().filter(Boolean));
  return parent;
}

/* Copies the file and line of a frame. */
const copyPlace = (f) => (f.file ? h('button', { type: 'button', class: 'plain copy', title: 'Copy ' + f.file, onclick: () => navigator.clipboard.writeText(f.file + (f.line ? ':' + f.line : '')) }, 'copy') : null);

const swatch = (colour) => h('i', { class: 'swatch', style: { '--colour': colour }, 'aria-hidden': 'true' });

/* A section of the page with its heading; the body is filled by the panel. */
function panel(id, title, note) {
  const body = h('div', { class: 'body' });
  const head = h('header', {}, h('h2', {}, title), note ? h('p', { class: 'note' }, note) : null);
  document.getElementById('panels').append(h('section', { id, tabindex: -1, 'aria-label': title }, head, body));
  document.getElementById('nav').append(h('a', { href: '#' + id }, title));
  const link = document.getElementById('nav').lastChild;
  const rename = (text) => { head.firstChild.textContent = link.textContent = text; body.parentNode.setAttribute('aria-label', text); };
  return { body, head, rename, show: (yes) => { body.parentNode.hidden = link.hidden = !yes; }, note: (text) => { let p = head.querySelector('.note'); if (!p) head.append(p = h('p', { class: 'note' })); p.textContent = text; } };
}

/* A group of buttons, one of which is on. */
function choice(label, names, chosen, choose) {
  const group = h('span', { class: 'choice', role: 'group', 'aria-label': label });
  const show = (now) => { for (const b of group.children) b.setAttribute('aria-pressed', b.value === now); };
  for (const [value, text] of names)
    group.append(h('button', { type: 'button', value, onclick: () => { show(value); choose(value); } }, text));
  show(chosen);
  group.show = show;
  return group;
}

/* Lets Enter do the same as a click. */
const keysOf = (props) => props && props.onclick ? { tabindex: 0, onkeydown: (e) => { if (e.key === 'Enter' && e.target === e.currentTarget) props.onclick(e); } } : {};

/* On a phone these columns are below the row, or hidden; the others keep a column of the grid (page.css). */
const NOT_NARROW = /\b(wide|wide-only|bars)\b/;
const isBlank = (cell) => cell === '' || cell === null || cell === undefined;

/* rows: arrays of cells; columns: { title, right, class, sorted: ascending, descending or null, keep: even if empty }. */
function table(all, allRows, props) {
  const used = all.map((c, i) => c.keep || !allRows.length || allRows.some((r) => !isBlank((r.cells || r)[i]))), columns = all.filter((c, i) => used[i]);
  const rows = allRows.map((r) => ({ props: r.props, cells: (r.cells || r).filter((c, i) => used[i]) }));
  const narrow = columns.filter((c) => !NOT_NARROW.test(c.class)), wide = narrow.find((c) => !c.right) || narrow[0];
  const cell = (tag, column, content) => h(tag, { class: (column.right ? 'num ' : '') + (column.class || ''), scope: tag === 'th' ? 'col' : null, 'aria-sort': tag === 'th' ? column.sorted : null }, content);
  return h('table', { ...props, style: { '--columns': narrow.map((c) => (c === wide ? 'minmax(0, 1fr)' : 'auto')).join(' ') } }, h('thead', {}, h('tr', {}, columns.map((c) => cell(c.title ? 'th' : 'td', c, c.title)))),
    h('tbody', {}, rows.map((r) => {
      return h('tr', { ...keysOf(r.props), ...r.props }, columns.map((c, i) => cell('td', c, r.cells[i])));
    })));
}

const bar = (part, all, colour) => h('span', { class: 'bar', 'aria-hidden': 'true' }, h('span', { style: { width: (all ? Math.max(0, 100 * part / all) : 0) + '%', background: colour || 'var(--ink-3)' } }));

/* A canvas in device pixels, drawn again when its size changes. */
function canvas(parent, height, draw) {
  const c = h('canvas', {});
  parent.append(c);
  let queued = false;
  const paint = () => {
    queued = false;
    const ratio = window.devicePixelRatio || 1, width = c.clientWidth;
    const tall = typeof height === 'function' ? height() : height;
    if (!width) return;
    c.style.height = tall + 'px';
    c.width = Math.round(width * ratio);
    c.height = Math.round(tall * ratio);
    const g = c.getContext('2d');
    g.setTransform(ratio, 0, 0, ratio, 0, 0);
    draw(g, width, tall);
  };
  c.redraw = () => { if (!queued) { queued = true; requestAnimationFrame(paint); } };
  c.paint = paint;
  new ResizeObserver(c.redraw).observe(parent);
  return c;
}

/* Colours and fonts of the style sheet, looked up once per theme. */
const styles = new Map();

function css(name) {
  if (!styles.has(name)) styles.set(name, getComputedStyle(document.documentElement).getPropertyValue(name).trim());
  return styles.get(name);
}

const FONT = (px, weight) => (weight || 400) + ' ' + px + 'px ' + css('--sans');

/* The text, or as much of it as fits. */
function clip(g, text, room) {
  if (g.measureText(text).width <= room) return text;
  let low = 0, high = text.length;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (g.measureText(text.slice(0, middle) + '\u2026').width <= room) low = middle;
    else high = middle - 1;
  }
  return low ? text.slice(0, low) + '\u2026' : '';
}

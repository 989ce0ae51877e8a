/* SPDX-License-Identifier: Apache-2.0 */
/* The blocks of the moment as a table. Only the rows in sight are elements. */

/* On a phone a row has two lines, as in page.css. */
const rowHigh = () => (window.innerWidth <= 700 ? 46 : 27);

function blocksTable(parent) {
  const summary = h('p', { class: 'summary' }), view = h('div', { class: 'rows', role: 'rowgroup', tabindex: 0, 'aria-label': 'Blocks' }), space = h('div', { class: 'space' });
  const columns = [['category', 'class'], ['size', 'bytes', true], ['count', 'blocks', true], ['line', 'allocated at'], ['age', 'age', true]];
  const head = h('div', { role: 'row' }), all = h('div', { role: 'table', 'aria-label': 'Blocks' }, h('div', { role: 'rowgroup' }, head), view), sort = { key: 'size', down: true };
  let by = 'block', rows = [], at = -1;
  const group = choice('Rows', [['block', 'each block'], ['line', 'by line'], ['class', 'by class']], 'block', (v) => { by = v; fill(); });
  view.append(space);
  parent.append(h('div', { class: 'tools' }, group, summary), all);

  const keys = { category: (r) => r.category, size: (r) => r.size, count: (r) => r.count, line: (r) => r.line, age: (r) => -r.ns };

  function collect() {
    const groups = new Map(), entries = chosen();
    if (by === 'block') return entries.map((e) => ({ entry: e, category: e.category, size: e.size, count: 1, line: originText(e.block.origin), ns: e.block.ns, title: e.block.origin.file }));
    for (const e of entries) {
      const line = by === 'line' ? originText(e.block.origin) : '', key = by === 'line' ? e.category + '\n' + e.block.origin.file + '\n' + line : e.category;
      const r = groups.get(key) || { category: e.category, size: 0, count: 0, line, ns: e.block.ns, title: e.block.origin.file, entry: null };
      r.size += e.size;
      r.count++;
      r.ns = Math.min(r.ns, e.block.ns);
      if (!r.entry || e.size > r.entry.size) r.entry = e;
      groups.set(key, r);
    }
    return [...groups.values()];
  }

  /* A row per class for blocks that are not listed, so that the sums stay complete. */
  function remainder() {
    const m = moment();
    if (filtering() || m.complete) return [];
    return m.rest.map((n, k) => ({ rest: true, category: k, size: n, count: 0, line: 'smaller ones, not listed', ns: Infinity, entry: null })).filter((r) => r.size > 0);
  }

  function fill() {
    const value = keys[sort.key], sign = sort.down ? -1 : 1;
    rows = collect().concat(remainder()).sort((a, b) => {
      const x = value(a), y = value(b);
      return (x < y ? -sign : x > y ? sign : 0) || b.size - a.size || a.ns - b.ns;
    });
    at = -1;
    showHead();
    const m = moment(), bytes = rows.reduce((s, r) => s + r.size, 0), blocks = rows.reduce((s, r) => s + r.count, 0);
    summary.textContent = (filtering() ? bytesText(bytes) + ' of ' + bytesText(m.bytes) + ' in ' : bytesText(m.bytes) + ' in ') + plural(blocks, 'block') +
      (m.complete || filtering() ? '' : ', ' + bytesText(m.bytes - m.listed) + ' of it in smaller ones that are not listed');
    all.setAttribute('aria-rowcount', rows.length + 1);
    view.scrollTop = 0;
    draw();
  }

  function showHead() {
    replace(head, columns.filter(([key]) => by !== 'block' || key !== 'count').filter(([key]) => (by !== 'class' || key !== 'line') && (key !== 'age' || !app.track.state)).map(([key, title, right]) =>
      h('span', { role: 'columnheader', class: key + (right ? ' num' : ''), 'aria-sort': sort.key === key ? (sort.down ? 'descending' : 'ascending') : null },
        h('button', { type: 'button', class: 'sort', onclick: () => { sort.down = sort.key === key ? !sort.down : key !== 'line' && key !== 'category'; sort.key = key; fill(); } }, title))));
  }

  function rowOf(r, i) {
    const c = app.doc.classes[r.category];
    const on = by === 'block' && r.entry && app.block === r.entry.block, cells = [
      h('span', { class: 'category' }, swatch(c.colour), c.words),
      h('span', { class: 'size num', title: exactText(r.size) }, bytesText(r.size)),
      by === 'block' ? null : h('span', { class: 'count num' }, r.rest ? '' : countText(r.count)),
      by === 'class' ? null : h('span', { class: 'line', title: r.title || null }, r.line),
      app.track.state ? null : h('span', { class: 'age num' }, r.rest ? '' : secondsText(moment().ns - r.ns)),
    ];
    for (const c of cells) if (c) c.setAttribute('role', 'cell');
    return h('div', { class: 'row' + (r.rest ? ' rest' : '') + (on ? ' on' : '') + (i === at ? ' at' : ''), role: 'row', 'aria-rowindex': i + 2, 'aria-current': on ? 'true' : null,
      style: { top: i * rowHigh() + 'px' }, onclick: () => open(i) }, cells);
  }

  function open(i) {
    at = i;
    if (rows[i] && rows[i].entry) chooseBlock(rows[i].entry.block);
    draw();
  }

  function draw() {
    const high = rowHigh(), first = Math.max(0, Math.floor(view.scrollTop / high) - 4), last = Math.min(rows.length, Math.ceil((view.scrollTop + view.clientHeight) / high) + 4);
    space.style.height = rows.length * high + 'px';
    head.style.paddingRight = 8 + view.offsetWidth - view.clientWidth + 'px'; /* width of the scroll bar */
    view.className = 'rows by-' + by;
    head.className = 'row head by-' + by;
    replace(space, rows.slice(first, last).map((r, i) => rowOf(r, first + i)));
  }

  view.addEventListener('scroll', draw);
  view.addEventListener('keydown', (e) => {
    const moves = { ArrowDown: at + 1, ArrowUp: at - 1, PageDown: at + 12, PageUp: at - 12, Home: 0, End: rows.length - 1 };
    if (!(e.key in moves)) return;
    e.preventDefault();
    const i = Math.max(0, Math.min(rows.length - 1, moves[e.key]));
    const high = rowHigh();
    if (i * high < view.scrollTop) view.scrollTop = i * high;
    if ((i + 1) * high > view.scrollTop + view.clientHeight) view.scrollTop = (i + 1) * high - view.clientHeight;
    open(i);
  });
  new ResizeObserver(draw).observe(view);
  on('moment', fill);
  on('filter', fill);
  on('block', draw);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The comparison as tables: by class, by phase, by module, by line. A click on a column sorts by it. */

const CHANGE_COLUMNS = [
  { key: 'old', title: 'old', right: true }, { key: 'new', title: 'new', right: true },
  { key: 'delta', title: 'difference', right: true }, { key: 'percent', title: '%', right: true, class: 'wide-only' },
  { key: 'share', title: 'share of new', right: true, class: 'wide-only' }, { key: 'word', title: '' },
];

/* rows: { name, old, new }; first: the title and the cells of the first column. */
function changeTable(first, rows, total) {
  const columns = [{ key: 'name', title: first.title, class: 'name' }, ...CHANGE_COLUMNS.filter((c) => total || c.key !== 'share')], holder = h('div', {});
  const value = { name: (r) => r.name, old: (r) => r.old, new: (r) => r.new, delta: (r) => Math.abs(r.new - r.old), word: (r) => changeWord(r.old, r.new), share: (r) => r.new,
    percent: (r) => (r.old ? Math.abs(r.new - r.old) / r.old : r.new ? Infinity : 0) };
  const cell = {
    name: (r) => (first.cell ? first.cell(r) : r.name),
    old: (r) => h('span', { title: exactText(r.old) }, bytesText(r.old)),
    new: (r) => h('span', { title: exactText(r.new) }, bytesText(r.new)),
    delta: (r, change, word, style) => h('span', { class: style, title: exactText(change) }, growthText(change)),
    percent: (r) => percentText(r.old, r.new),
    share: (r) => shareText(r.new, total),
    word: (r, change, word, style) => h('span', { class: 'word ' + style }, word),
  };
  let sort = { key: first.sorted ? 'delta' : null, down: true };

  function heading(c) {
    return h('button', { type: 'button', class: 'sort', 'aria-label': 'Sort by ' + (c.title || 'kind of change'), onclick: () => {
      sort = { key: c.key, down: sort.key === c.key ? !sort.down : c.key !== 'name' && c.key !== 'word' };
      show();
    } }, c.title || 'change');
  }

  function row(r) {
    const change = r.new - r.old, word = changeWord(r.old, r.new), style = change > 0 ? 'up' : change < 0 ? 'down' : '';
    return { props: { 'data-name': r.key || r.name, 'data-old': r.old, 'data-new': r.new, class: change ? '' : 'same' },
      cells: columns.map((c) => cell[c.key](r, change, word, style)) };
  }

  function show() {
    const of = value[sort.key], order = rows.slice();
    if (of) order.sort((a, b) => (of(a) < of(b) ? -1 : of(a) > of(b) ? 1 : 0) * (sort.down ? -1 : 1));
    replace(holder, table(columns.map((c) => ({ ...c, title: heading(c), sorted: sort.key === c.key ? (sort.down ? 'descending' : 'ascending') : null })), order.map(row), { class: 'changes' }));
  }
  show();
  return holder;
}

function classesPanel(doc) {
  const p = panel('classes', 'By class', 'each run at its own peak'), d = doc.diff;
  p.body.append(changeTable({ title: 'class', cell: (r) => h('span', {}, swatch(doc.classes[r.category].colour), r.name) }, d.classes.map((r) => ({ ...r, key: doc.classes[r.category].name })), doc.tracks[1].peak_bytes));
}

function phasesPanel(doc) {
  const p = panel('phases', 'By phase', 'the highest moment in each');
  p.show(doc.diff.phases.length > 0);
  p.body.append(changeTable({ title: 'phase' }, doc.diff.phases, 0));
}

/* A table of the rows that changed, with a search and a choice of all rows. */
function longTable(id, title, first, rows, leftOut, doc) {
  const p = panel(id, title, comparedText(doc)), holder = h('div', {}), MOST = 400;
  const changed = rows.filter((r) => r.old !== r.new);
  let which = changed.length ? 'changed' : 'all', text = '';
  const search = h('input', { type: 'search', placeholder: 'Search', 'aria-label': 'Search in ' + title, oninput: () => { text = search.value.toLowerCase(); show(); } });

  function show() {
    const all = (which === 'all' ? rows : changed).filter((r) => !text || (r.name + ' ' + (r.words || '')).toLowerCase().includes(text)), now = all.slice(0, MOST);
    replace(holder, now.length ? changeTable({ ...first, sorted: true }, now, doc.diff.new.bytes) : h('p', { class: 'note' }, 'Nothing here.'),
      all.length > now.length || leftOut ? h('p', { class: 'note' }, plural(all.length - now.length + leftOut, 'row') + ' with less change left out.') : null);
  }

  p.show(rows.length > 0);
  p.body.append(h('div', { class: 'tools' }, choice('Rows', [['changed', 'changed (' + countText(changed.length) + ')'], ['all', 'all (' + countText(rows.length) + ')']], which, (v) => { which = v; show(); }),
    rows.length > 12 ? h('span', { class: 'filters' }, search) : null), holder);
  show();
}

function modulesPanel(doc) {
  longTable('modules', 'By module', { title: 'module' }, doc.diff.modules, doc.diff.modules_left_out, doc);
}

function linesPanel(doc) {
  const moved = (r) => (r.is.file && r.was.file && (r.is.line !== r.was.line || baseName(r.is.file) !== baseName(r.was.file)) ? h('span', { class: 'note' }, ' was ' + baseName(r.was.file) + ':' + r.was.line) : null);
  const rows = doc.diff.lines.map((r) => ({ ...r, words: doc.classes[r.category].words, key: doc.classes[r.category].name + ' ' + r.name }));
  longTable('lines', 'By line', { title: 'line', cell: (r) => h('span', { title: r.owner.file || null }, swatch(doc.classes[r.category].colour), r.name, h('span', { class: 'note' }, '  ' + r.words), moved(r)) }, rows, doc.diff.lines_left_out, doc);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Filters for the blocks of a moment. The table, the flame graph and the segments use them. */

const filters = { text: '', least: 0, age: '0', thread: '', stream: '' };

const SIZES = [[0, 'any size'], [1024, '1 KiB or more'], [1 << 20, '1 MiB or more'], [16 << 20, '16 MiB or more'], [256 << 20, '256 MiB or more']];
const AGES = [['0', 'any age'], ['step', 'allocated in this step'], ['1', 'older than this step'], ['2', 'older than 2 steps'], ['first', 'allocated before the steps'], ['mark', 'allocated since the marked moment']];

function matches(entry) {
  const b = entry.block, f = filters;
  return (!f.category || entry.category === Number(f.category)) && b.size >= f.least && (!f.thread || b.context.thread === f.thread) &&
    (!f.stream || b.context.stream === f.stream) && (f.age === '0' || ageMatches(b)) && (!f.text || haystack(b, entry.category).includes(f.text));
}

function ageMatches(b) {
  if (filters.age === 'mark') return b.seq > app.mark;
  const t = b.track, now = stepAt(t, app.seq), born = stepAt(t, b.seq);
  if (!now || !born) return true;
  if (filters.age === 'step') return born === now;
  if (filters.age === 'first') return born.kind === 'before';
  return born.number <= now.number - Number(filters.age);
}

/* The text that a search looks in: line, frames, class and address. */
function haystack(b, category) {
  if (b.origin.words === undefined)
    b.origin.words = [originText(b.origin), b.origin.file, ...framesOf(app.doc, b.origin.node).map((f) => f.fn + ' ' + f.file)].join('\n').toLowerCase();
  return b.origin.words + '\n' + app.doc.classes[category].words + '\n0x' + b.addr.toString(16);
}

/* The moment's blocks that pass the filters. */
function chosen() {
  const m = moment();
  if (m.chosen !== filters.version || !m.entries) {
    m.entries = m.blocks.filter(matches);
    m.chosen = filters.version;
  }
  return m.entries;
}

const filtering = () => Boolean(filters.text || filters.category || filters.least || filters.age !== '0' || filters.thread || filters.stream);

function setFilter(name, value) {
  filters[name] = value;
  filters.version = (filters.version || 0) + 1;
  tell('filter');
}

/* Shows only blocks with that text, without the other filters; all blocks if none has it. */
function showOnly(text) {
  const some = moment().blocks.some((e) => haystack(e.block, e.category).includes(text));
  Object.assign(filters, { category: '', least: 0, age: '0', thread: '', stream: '' });
  setFilter('text', some ? text : '');
}

function filterBar() {
  const select = (name, label, options) => h('select', { 'aria-label': label, onchange: (e) => setFilter(name, name === 'least' ? Number(e.target.value) : e.target.value) },
    options.map(([value, text]) => h('option', { value }, text)));
  const kinds = select('category', 'Class', []), threads = select('thread', 'Thread', []), streams = select('stream', 'Stream', []);
  const textOf = (input) => input.value.trim().toLowerCase();
  let wait = 0;
  const search = h('input', { type: 'search', placeholder: 'Search functions, files, classes, addresses', 'aria-label': 'Search',
    oninput: (e) => { clearTimeout(wait); wait = setTimeout(() => setFilter('text', textOf(search)), 120); } });
  const selects = { category: kinds, least: select('least', 'Size', SIZES), age: select('age', 'Age', AGES), thread: threads, stream: streams };
  const bar = h('div', { class: 'filters' }, search, Object.values(selects));
  const fill = (element, all, options) => replace(element, h('option', { value: '' }, all), options.map(([value, text]) => h('option', { value }, text)));
  on('filter', () => {
    if (textOf(search) !== filters.text) search.value = filters.text;
    for (const [name, element] of Object.entries(selects)) element.value = filters[name] || (name === 'least' ? 0 : '');
  });
  on('moment', () => {
    const m = moment(), t = app.track, names = (key) => [...new Set(t.contexts.map((c) => c[key]))].sort();
    fill(kinds, 'all classes', m.classes.map((n, k) => [k, n]).filter(([, n]) => n).map(([k, n]) => [k, app.doc.classes[k].words + ' \u2013 ' + bytesText(n)]));
    kinds.value = filters.category || '';
    if (kinds.value !== (filters.category || '')) filters.category = '';
    if (threads.dataset.track === String(t.index)) return;
    threads.dataset.track = t.index;
    selects.age.hidden = t.state;
    filters.thread = filters.stream = '';
    fill(threads, 'all threads', names('thread').map((n) => [n, n || '(no name)']));
    fill(streams, 'all streams', names('stream').map((n) => [n, 'stream ' + n]));
    threads.hidden = names('thread').length < 2;
    streams.hidden = names('stream').length < 2;
  });
  return bar;
}

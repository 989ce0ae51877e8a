/* SPDX-License-Identifier: Apache-2.0 */
/* The dashboard of a lake: a table for each ready question, and the peaks over commits as a chart. */

const WORDS = { git_commit: 'commit', git_branch: 'branch', bytes_per_step: 'per step', change_bytes: 'change', refusals: 'failed allocations', from_median_bytes: 'from median', peak_at: 'where', alloc_conf: 'setting' };

const titleOf = (name) => WORDS[name] || name.replace(/_bytes$/, '').replace(/_ns$/, '').replace(/_/g, ' ');

/* The kind of a column's values, by its name and type. */
function kindOf([name, type]) {
  if (name === 'change_bytes' || name === 'from_median_bytes') return 'change';
  if (name === 'bytes' || name === 'bytes_per_step' || name.endsWith('_bytes')) return 'bytes';
  if (name.endsWith('_ns')) return 'ns';
  return /INT|DOUBLE|DECIMAL|FLOAT/.test(type) ? 'number' : 'text';
}

const PROSE = ['text', 'remedy']; /* columns of sentences */

/* Links a run to its page, or else offers its recording's path. */
const runCell = (run, recording, page) => (page ? h('a', { href: page.split('/').map(encodeURIComponent).join('/') }, run) : [run + ' ', copyPlace({ file: recording })]);

function cellOf(kind, name, value, recording, page) {
  if (value === null) return '';
  if (kind === 'bytes') return h('span', { title: exactText(value) }, bytesText(value));
  if (kind === 'change') return h('span', { title: exactText(value), class: value > 0 ? 'up' : value < 0 ? 'down' : '' }, growthText(value));
  if (kind === 'ns') return secondsText(value);
  if (kind === 'number') return Number.isInteger(value) ? countText(value) : String(value);
  const text = wordsOf(name, value);
  if (name === 'run') return runCell(text, recording, page);
  const shown = shortOf(name, text);
  return shown !== text ? h('span', { title: text }, shown) : isLong(name, text) ? longText(text) : text;
}

const wordsOf = (name, value) => visible(['cause', 'class', 'phase', 'end_state'].includes(name) ? String(value).replaceAll('_', ' ') : String(value));
const SHORT = { git_commit: (text) => text.slice(0, 10), file: baseName, started: (text) => text.slice(0, 19) };
const shortOf = (name, text) => (SHORT[name] ? SHORT[name](text) : text);
const isLong = (name, text) => !['run', 'last_run'].includes(name) && shortOf(name, text).length > 32;

/* A text cut to two lines until it is clicked. */
function longText(text) {
  const turn = (e) => { if (e.type === 'click' || e.key === 'Enter') e.currentTarget.classList.toggle('all'); };
  return h('span', { class: 'long', title: text, tabindex: 0, role: 'button', onclick: turn, onkeydown: turn }, text);
}

function sortedTable(p, panelOf) {
  const holder = h('div', { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': p.title + ' as a table' }), kinds = p.columns.map(kindOf), MOST = 300;
  let sort = null, text = '', most = MOST;
  const search = h('input', { type: 'search', placeholder: 'Search', 'aria-label': 'Search in ' + p.title, oninput: () => { text = search.value.toLowerCase(); show(); } });
  const short = p.columns.map(([name], i) => kinds[i] !== 'text' || !p.rows.some((r) => r[i] !== null && isLong(name, wordsOf(name, r[i]))));
  const at = (name) => p.columns.findIndex(([n]) => n === name), same = p.rows.every((r) => r[at('program')] === r[at('command')]);
  const used = p.columns.map(([name], i) => p.rows.some((r) => r[i] !== null) && name !== 'recording' && !(name === 'program' && same) && !(name === 'month' && at('first_day') >= 0));

  const heading = (i) => h('button', { type: 'button', class: 'sort', onclick: () => { sort = { i, down: sort && sort.i === i ? !sort.down : kinds[i] !== 'text' }; show(); } }, titleOf(p.columns[i][0]));

  function show() {
    const rows = p.rows.filter((r) => !text || r.some((v) => v !== null && String(v).toLowerCase().includes(text)));
    if (sort) {
      const { i, down } = sort, far = kinds[i] === 'change' ? Math.abs : (v) => v;
      rows.sort((a, b) => (a[i] === null) - (b[i] === null) || (far(a[i]) < far(b[i]) ? -1 : far(a[i]) > far(b[i]) ? 1 : 0) * (down ? -1 : 1));
    }
    const shown = p.columns.map((c, i) => i).filter((i) => used[i]), left = rows.length - most;
    replace(holder, table(shown.map((i) => ({ title: heading(i), sorted: sort && sort.i === i ? (sort.down ? 'descending' : 'ascending') : null, right: kinds[i] !== 'text', class: short[i] ? 'short' : PROSE.includes(p.columns[i][0]) ? 'text' : '' })),
      rows.slice(0, most).map((r) => shown.map((i) => cellOf(kinds[i], p.columns[i][0], r[i], r[at('recording')], p.pages[r[at('recording')]]))), { class: 'lake', id: 'table-' + p.name }),
    left > 0 ? h('button', { type: 'button', class: 'plain', onclick: () => { most = Infinity; show(); } }, 'Show ' + plural(left, 'more row')) : null,
    p.left_out ? h('p', { class: 'note' }, plural(p.left_out, 'row') + ' left out: gpumemtrace sql has them.') : null);
  }

  if (!p.rows.length) panelOf.body.append(h('p', { class: 'note' }, 'None.'));
  else panelOf.body.append(p.rows.length > 12 ? h('div', { class: 'filters' }, search) : '', holder);
  if (p.rows.length) show();
}

/* The points of each command on each card, in order of time. */
function seriesOf(p) {
  const at = Object.fromEntries(p.columns.map(([name], i) => [name, i])), all = new Map();
  for (const r of p.rows) {
    const name = [r[at.project], r[at.command], r[at.card]].filter(Boolean).map((x) => visible(String(x))).join(', ');
    if (r[at.peak_bytes] === null) continue;
    if (!all.has(name)) all.set(name, []);
    all.get(name).push({ day: r[at.first_day], commit: r[at.git_commit] || '', peak: r[at.peak_bytes], least: r[at.least_peak_bytes], most: r[at.most_peak_bytes] });
  }
  return [...all].map(([name, points]) => ({ name, points })).sort((a, b) => b.points.length - a.points.length);
}

function drawPeaks(g, width, height, points) {
  const most = Math.max(...points.map((p) => p.most)) * 1.05 || 1, box = { left: EDGE.left, top: 8, width: width - EDGE.left - EDGE.right, height: height - 30 };
  const x = (i) => box.left + (points.length > 1 ? i / (points.length - 1) : 0.5) * box.width, y = (v) => box.top + box.height * (1 - v / most);
  g.clearRect(0, 0, width, height);
  drawGrid(g, box, most);
  g.strokeStyle = g.fillStyle = css('--accent');
  g.lineWidth = 1.5;
  g.beginPath();
  points.forEach((p, i) => (i ? g.lineTo(x(i), y(p.peak)) : g.moveTo(x(i), y(p.peak))));
  g.stroke();
  points.forEach((p, i) => {
    g.beginPath(); g.moveTo(x(i), y(p.least)); g.lineTo(x(i), y(p.most)); g.stroke();
    g.beginPath(); g.arc(x(i), y(p.peak), 3, 0, 7); g.fill();
  });
  g.fillStyle = css('--ink-3');
  const step = Math.max(1, Math.ceil(points.length * 90 / Math.max(1, box.width)));
  points.forEach((p, i) => { if (i % step === 0) { g.textAlign = i === 0 ? 'left' : i === points.length - 1 ? 'right' : 'center'; g.fillText(p.commit.slice(0, 8) || p.day, x(i), height - 6); } });
}

function peaksChart(p, panelOf) {
  const series = seriesOf(p);
  if (!series.length) return;
  let chosen = series[0];
  const pick = h('select', { 'aria-label': 'Command', onchange: () => { chosen = series[pick.selectedIndex]; c.redraw(); } },
    series.map((s) => h('option', {}, s.name + ' (' + plural(s.points.length, 'commit') + ')')));
  const holder = h('div', {});
  panelOf.body.append(h('div', { class: 'filters' }, pick), holder);
  const c = canvas(holder, 220, (g, width, height) => drawPeaks(g, width, height, chosen.points));
  on('theme', c.redraw);
}

function startLake() {
  const doc = app.doc = JSON.parse(document.getElementById('first').textContent), [all, ...panels] = doc.panels;
  const n = Object.fromEntries(all.columns.map(([name], i) => [name, (all.rows[0] || [])[i]]));
  document.getElementById('command').textContent = visible(doc.lake);
  document.getElementById('summary').textContent = [plural(n.recordings, 'recording') + ' of ' + plural(n.runs, 'run'), plural(n.projects, 'project'),
    n.first_day === n.last_day ? n.first_day : n.first_day + ' to ' + n.last_day, n.out_of_memory ? countText(n.out_of_memory) + ' ran out of memory' : null,
    n.without_end ? countText(n.without_end) + ' without an end' : null].filter(Boolean).join('  |  ');
  app.ready = true;
  for (const p of panels) {
    const made = panel(p.name, p.title + (p.rows.length ? '' : ': none'), p.note);
    if (p.name === 'peaks') peaksChart(p, made);
    sortedTable(p, made);
  }
  themeSwitch();
  window.gpumemtrace = { app };
  document.documentElement.dataset.ready = 'yes';
}

startLake();

/* SPDX-License-Identifier: Apache-2.0 */
/* The map of the framework's segments at the moment: blocks, holes, and the lines that keep each alive. */

const SEGMENT_ROW = 16;

/* Joins adjacent mappings, because a hole may cross their border. */
function segmentsAt(t, seq) {
  const alive = t.segments.items.filter((s) => isAlive(s, seq)).sort((a, b) => a.addr - b.addr), out = [];
  for (const s of alive) {
    const last = out[out.length - 1];
    if (last && last.mapped && s.mapped && last.pool === s.pool && last.addr + last.size === s.addr) last.size += s.size;
    else out.push({ addr: s.addr, size: s.size, mapped: s.mapped, pool: s.pool, blocks: [], used: 0, hole: 0 });
  }
  return out;
}

function fillSegments(segments, entries) {
  let i = 0;
  for (const e of entries.slice().sort((a, b) => a.block.addr - b.block.addr)) {
    while (i < segments.length && segments[i].addr + segments[i].size <= e.block.addr) i++;
    const s = segments[i];
    if (!s || e.block.addr < s.addr) continue;
    s.blocks.push(e);
    s.used += e.size;
  }
  for (const s of segments) {
    let from = s.addr;
    for (const e of s.blocks) {
      s.hole = Math.max(s.hole, e.block.addr - from);
      from = Math.max(from, e.block.addr + e.size);
    }
    s.hole = Math.max(s.hole, s.addr + s.size - from);
  }
  return segments;
}

function segmentsPanel(parent) {
  let segments = [], hits = [], layout = [];
  const summary = h('p', { class: 'summary' }), words = h('div', { class: 'readout' }), holder = h('div', { class: 'segments' }), pins = h('div', {});
  parent.append(h('div', { class: 'tools' }, summary), words, holder, pins);
  const map = canvas(holder, () => { arrange(holder.clientWidth); return Math.max(40, layout.length * (SEGMENT_ROW + 5) + 4); }, draw);

  /* Lays segments out in rows of equal scale. A segment that is longer than a row continues in the next. */
  function arrange(width) {
    const largest = segments.reduce((m, s) => Math.max(m, s.size), 1), total = segments.reduce((m, s) => m + s.size, 0);
    const perRow = Math.max(Math.ceil(total / 40), Math.min(largest, Math.ceil(total / 6)), 1);
    let row = [], at = 0;
    layout = [];
    for (const s of segments) {
      for (let done = 0; done < s.size;) {
        if (at >= perRow) { layout.push(row); row = []; at = 0; }
        const part = Math.min(s.size - done, perRow - at);
        row.push({ segment: s, from: done, part, at });
        done += part;
        at += part;
      }
    }
    if (row.length) layout.push(row);
    layout.scale = width / perRow;
  }

  function draw(g, width) {
    hits = [];
    g.clearRect(0, 0, width, 1e5);
    layout.forEach((row, i) => row.forEach((piece) => drawPiece(g, piece, i * (SEGMENT_ROW + 5) + 2)));
  }

  function drawPiece(g, piece, y) {
    const s = piece.segment, k = layout.scale, x = piece.at * k, start = s.addr + piece.from, end = start + piece.part;
    g.fillStyle = css('--hole');
    g.fillRect(x, y, Math.max(1, piece.part * k - 1), SEGMENT_ROW);
    hits.push({ segment: s, x, y, w: piece.part * k, start });
    for (const e of s.blocks) {
      const a = Math.max(start, e.block.addr), b = Math.min(end, e.block.addr + e.size);
      if (b <= a) continue;
      g.globalAlpha = matches(e) ? 1 : 0.2;
      g.fillStyle = colourOf(e.category);
      g.fillRect(x + (a - start) * k, y, Math.max(0.5, (b - a) * k - ((b - a) * k > 3 ? 0.5 : 0)), SEGMENT_ROW);
      g.globalAlpha = 1;
      if (app.block !== e.block) continue;
      g.strokeStyle = css('--ink-1');
      g.lineWidth = 1.5;
      g.strokeRect(x + (a - start) * k, y - 1, Math.max(2, (b - a) * k), SEGMENT_ROW + 2);
    }
  }

  function pinTable() {
    const rows = segments.filter((s) => s.blocks.length && s.used < s.size / 2).sort((a, b) => (b.size - b.used) - (a.size - a.used)).slice(0, 8);
    if (!rows.length) return replace(pins);
    replace(pins, h('h3', {}, 'Mostly empty segments'), table([{ title: 'segment' }, { title: 'free', right: true }, { title: 'blocks', right: true }, { title: 'largest block allocated at', class: 'wide' }],
      rows.map((s) => {
        const first = s.blocks.slice().sort((a, b) => b.size - a.size)[0];
        return { props: { onclick: () => chooseBlock(first.block), class: 'link' }, cells: [h('code', {}, '0x' + s.addr.toString(16)), bytesText(s.size - s.used) + ' of ' + bytesText(s.size), countText(s.blocks.length),
          h('span', {}, swatch(colourOf(first.category)), originText(first.block.origin))] };
      }), { class: 'pins' }));
  }

  function show() {
    const m = moment(), t = app.track;
    segments = fillSegments(segmentsAt(t, app.seq), m.blocks);
    const reserved = segments.reduce((s, x) => s + x.size, 0), hole = segments.reduce((s, x) => Math.max(s, x.hole), 0);
    parent.classList.toggle('empty', !segments.length);
    summary.textContent = !segments.length ? 'The framework held no segments at this moment.'
      : plural(segments.length, 'segment') + ', ' + bytesText(reserved) + ' in all; ' + bytesText(Math.max(0, reserved - m.bytes)) + ' not in use' +
        (m.complete ? ', the largest hole ' + bytesText(hole) : '; smaller blocks are not listed here, so holes look larger than they are');
    replace(words);
    pinTable();
    map.redraw();
  }

  function under(e) {
    const r = map.getBoundingClientRect(), x = e.clientX - r.left, y = e.clientY - r.top;
    const hit = hits.find((c) => x >= c.x && x < c.x + c.w && y >= c.y && y < c.y + SEGMENT_ROW + 5);
    if (!hit) return null;
    const addr = hit.start + (x - hit.x) / layout.scale, entry = hit.segment.blocks.find((b) => addr >= b.block.addr && addr < b.block.addr + b.size);
    return { segment: hit.segment, entry };
  }

  map.addEventListener('pointermove', (e) => {
    const u = under(e);
    if (!u) return replace(words);
    const s = u.segment;
    replace(words, u.entry ? [h('b', { class: 'num' }, bytesText(u.entry.size)), swatch(colourOf(u.entry.category)), h('span', {}, originText(u.entry.block.origin))] : h('b', {}, 'a hole'),
      h('span', { class: 'exact' }, 'in the segment 0x' + s.addr.toString(16) + ': ' + bytesText(s.used) + ' of ' + bytesText(s.size) + ' used, ' + plural(s.blocks.length, 'block') + ', largest hole ' + bytesText(s.hole) + (s.pool ? '; in a private pool of ' + s.pool : '')));
  });
  map.addEventListener('pointerleave', () => replace(words));
  map.addEventListener('click', (e) => { const u = under(e); if (u && u.entry) chooseBlock(u.entry.block); });
  on('moment', show);
  on('filter', map.redraw);
  on('block', map.redraw);
  on('theme', map.redraw);
}

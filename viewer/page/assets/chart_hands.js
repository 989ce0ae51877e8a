/* SPDX-License-Identifier: Apache-2.0 */
/* Input on a chart: a drag selects a stretch, with shift it pans; wheel, keys and buttons zoom; the overview can be dragged.
 * It does not know what the chart shows: `o` has chart(), which returns the Chart, box, holder, main, overview, center(),
 * and the callbacks changed(), hover(px) (null: left) and click(px). */

function chartHands(o) {
  let drag = null;
  const view = () => o.chart().view;
  const at = (e) => Math.max(0, Math.min(o.box.width, e.clientX - o.main.getBoundingClientRect().left - o.box.left));
  const xOf = (px) => view()[0] + px / o.box.width * (view()[1] - view()[0]);
  const zoom = (factor, x) => { o.chart().zoom(factor, x); o.changed(); };
  const all = () => { o.chart().reset(); o.changed(); };
  const stretch = () => (drag && drag.kind === 'brush' && Math.abs(drag.to - drag.from) >= 4 ? [Math.min(drag.from, drag.to), Math.max(drag.from, drag.to)] : null);

  function down(e) {
    if (e.button) return;
    o.main.setPointerCapture(e.pointerId);
    drag = { kind: e.shiftKey ? 'pan' : 'brush', from: at(e), to: at(e), y: e.offsetY, view: view().slice() };
    o.holder.focus({ preventScroll: true });
  }

  function move(e) {
    if (drag) {
      drag.to = at(e);
      if (drag.kind === 'pan') {
        const d = (drag.from - drag.to) / o.box.width * (drag.view[1] - drag.view[0]);
        o.chart().setView(drag.view[0] + d, drag.view[1] + d);
      }
    }
    o.hover(at(e), e.offsetY);
    o.changed();
  }

  function up() {
    if (!drag) return;
    const d = drag, chosen = stretch();
    drag = null;
    if (chosen) o.chart().setView(xOf(chosen[0]), xOf(chosen[1]));
    else if (d.kind === 'brush') o.click(d.from, d.y);
    o.changed();
  }

  function wheel(e) {
    if (!e.ctrlKey && !e.metaKey && Math.abs(e.deltaX) <= Math.abs(e.deltaY)) return;
    e.preventDefault();
    if (e.ctrlKey || e.metaKey) o.chart().zoom(Math.exp(e.deltaY / 200), xOf(at(e)));
    else o.chart().pan(e.deltaX / o.box.width);
    o.changed();
  }

  function brushOverview(e) {
    if (e.type === 'pointerdown') o.overview.setPointerCapture(e.pointerId);
    else if (!o.overview.hasPointerCapture(e.pointerId)) return;
    const r = o.overview.getBoundingClientRect(), [a, b] = o.chart().all, span = view()[1] - view()[0];
    const x = a + (e.clientX - r.left - EDGE.left) / (r.width - EDGE.left - EDGE.right) * (b - a);
    o.chart().setView(x - span / 2, x + span / 2);
    o.changed();
  }

  function key(e) {
    if (e.ctrlKey || e.metaKey || e.altKey) return;
    if (e.key === '+' || e.key === '=') o.chart().zoom(0.5, o.center());
    else if (e.key === '-') o.chart().zoom(2, o.center());
    else if (e.key === '0' || (e.key === 'Escape' && !o.chart().isWhole())) o.chart().reset();
    else if (e.key === '[') o.chart().pan(-0.25);
    else if (e.key === ']') o.chart().pan(0.25);
    else if (!o.key(e)) return;
    e.preventDefault();
    o.changed();
  }

  o.main.addEventListener('pointerdown', down);
  o.main.addEventListener('pointermove', move);
  o.main.addEventListener('pointerup', up);
  o.main.addEventListener('pointerleave', () => { o.hover(null); o.changed(); });
  o.main.addEventListener('dblclick', all);
  o.main.addEventListener('wheel', wheel, { passive: false });
  o.overview.addEventListener('pointerdown', brushOverview);
  o.overview.addEventListener('pointermove', brushOverview);
  o.holder.addEventListener('keydown', key);
  o.holder.addEventListener('focus', o.changed);
  const buttons = h('span', { class: 'choice' },
    h('button', { type: 'button', title: 'Zoom in (+)', onclick: () => zoom(0.5, o.center()) }, '+'),
    h('button', { type: 'button', title: 'Zoom out (-)', onclick: () => zoom(2, o.center()) }, '\u2212'),
    h('button', { type: 'button', title: 'Show all (0)', onclick: all }, 'all'));
  return { buttons, stretch };
}

/* Draws the stretch that is being selected. */
function drawStretch(g, stretch, box) {
  if (!stretch) return;
  g.fillStyle = css('--accent');
  g.globalAlpha = 0.14;
  g.fillRect(box.left + stretch[0], box.top, stretch[1] - stretch[0], box.height);
  g.globalAlpha = 1;
}

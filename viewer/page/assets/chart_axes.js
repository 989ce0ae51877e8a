/* SPDX-License-Identifier: Apache-2.0 */
/* The axes of a chart: lines of round numbers of bytes, and times or events below. */

const EDGE = { left: 62, right: 14, top: 16, strip: 16, steps: 16 };

function drawGrid(g, box, top) {
  g.font = FONT(11);
  g.textAlign = 'right';
  g.textBaseline = 'middle';
  for (const t of byteTicks(top, Math.max(2, Math.round(box.height / 42)))) {
    const y = Math.round(box.top + box.height - t / top * box.height) + 0.5;
    g.fillStyle = css('--rule');
    g.fillRect(box.left, y - 0.5, box.width, 1);
    g.fillStyle = css('--ink-3');
    g.fillText(tickText(t, top), box.left - 8, y);
  }
  g.textAlign = 'left';
}

function drawTimes(g, chart, box, bottom) {
  const [from, to] = chart.view, count = Math.max(3, Math.floor(box.width / 90));
  const step = chart.axis === 'time' ? niceStep(to - from, count) : Math.max(1, niceStep(to - from, count));
  drawTicks(g, from, to, step, box, bottom, (v) => (chart.axis === 'time' ? axisTime(v, step) : countText(v)));
}

/* Draws the numbers below a chart, within its width. A number that would overlap the one before it is left out. */
function drawTicks(g, from, to, step, box, bottom, words) {
  let free = -1e9;
  g.font = FONT(11);
  g.fillStyle = css('--ink-3');
  g.textAlign = 'left';
  g.textBaseline = 'alphabetic';
  for (let v = Math.ceil(from / step) * step; v <= to; v += step) {
    const wide = g.measureText(words(v)).width, middle = box.left + (v - from) / (to - from) * box.width, x = Math.max(box.left, Math.min(middle - wide / 2, box.left + box.width - wide));
    if (x < free) continue;
    g.fillText(words(v), x, bottom);
    free = x + wide + 8;
  }
}

/* As many digits as the distance between two ticks needs. */
function axisTime(ns, step) {
  const [unit, name] = step >= 1e9 ? [1e9, ' s'] : step >= 1e6 ? (ns >= 1e9 ? [1e9, ' s'] : [1e6, ' ms']) : step >= 1e3 ? [1e6, ' ms'] : [1e3, ' us'];
  const digits = Math.max(0, Math.ceil(-Math.log10(step / unit) - 1e-9));
  return ns === 0 ? '0' : (ns / unit).toFixed(digits) + name;
}

/* Shows the part in view on the overview. */
function drawWindow(g, chart, area, height) {
  const [first, last] = chart.all, place = (x) => area.left + (x - first) / (last - first) * area.width;
  const a = place(chart.view[0]), b = place(chart.view[1]);
  g.fillStyle = css('--paper');
  g.globalAlpha = 0.72;
  g.fillRect(area.left, 0, a - area.left, height);
  g.fillRect(b, 0, area.left + area.width - b, height);
  g.globalAlpha = 1;
  g.strokeStyle = css(chart.isWhole() ? '--rule' : '--accent');
  g.strokeRect(Math.round(a) + 0.5, 1.5, Math.max(2, Math.round(b - a) - 1), height - 3);
}

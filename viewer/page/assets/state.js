/* SPDX-License-Identifier: Apache-2.0 */
/* The reader's choices. Panels are called when one changes. */

const app = {
  doc: null,
  track: null,
  seq: 0, /* the moment is after this event */
  block: null,
  ready: false, /* the second document was read */
  hover: null, /* the point under the pointer */
  lines: {}, /* lines that the chart shows */
  shown: null, /* classes that the charts show */
  listeners: {},
};

/* An early listener needs no blocks: it is called before the first picture, the others after it. */
function on(what, listener, early) {
  (app.listeners[what] = app.listeners[what] || []).push({ listener, early });
}

function tell(what) {
  for (const l of app.listeners[what] || []) if (app.ready || l.early) l.listener();
}

function chooseTrack(index) {
  app.track = app.doc.tracks[index];
  app.seq = app.track.peak_seq;
  app.block = null;
  app.moment = null;
  tell('track');
  tell('moment');
}

function chooseMoment(seq, scroll) {
  app.seq = seq;
  app.moment = null;
  if (app.block && !isAlive(app.block, seq)) chooseBlock(null);
  tell('moment');
  if (scroll) document.getElementById('timeline').scrollIntoView({ block: 'start' });
}

function chooseBlock(block) {
  app.block = block;
  tell('block');
}

const moment = () => app.moment || (app.moment = momentAt(app.doc, app.track, app.seq));

const colourOf = (category) => app.doc.classes[category].colour;

/* A button for each used class. A click hides or shows it; with Shift or Alt it is shown alone. */
function classLegend(legend, used, redraw) {
  replace(legend, stackOrder().filter(used).reverse().map((k) => h('button', { type: 'button', 'data-kind': k, 'data-words': app.doc.classes[k].words, 'aria-pressed': app.shown[k], onclick: (e) => {
    if (e.altKey || e.shiftKey) app.shown = app.shown.map((_, i) => i === k);
    else app.shown[k] = !app.shown[k];
    if (!app.shown.some((on, i) => on && used(i))) app.shown.fill(true);
    for (const item of legend.children) item.setAttribute('aria-pressed', app.shown[Number(item.dataset.kind)]);
    redraw();
  } }, swatch(app.doc.classes[k].colour), h('span', {}, app.doc.classes[k].words), h('span', { class: 'num' }))));
}

/* Order of the classes from the bottom up: those that stay longest first. */
function stackOrder() {
  const level = (i) => app.doc.classes[i].level;
  return app.doc.classes.map((_, i) => i).sort((a, b) => level(a) - level(b) || a - b);
}

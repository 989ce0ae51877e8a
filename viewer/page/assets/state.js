/* SPDX-License-Identifier: Apache-2.0 */
/* What the reader has chosen; panels are called when it changes. */

const app = {
  doc: null,
  track: null,
  seq: 0, /* the moment: after this event */
  block: null,
  ready: false, /* the blocks may be read */
  hover: null, /* a point under the pointer */
  lines: {}, /* which lines the chart shows */
  shown: null, /* which classes the charts show */
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

function moment() {
  if (!app.moment) app.moment = momentAt(app.doc, app.track, app.seq);
  return app.moment;
}

function colourOf(category) {
  return app.doc.classes[category].colour;
}

/* From the bottom of a stack to its top: what stays the longest first. */
function stackOrder() {
  const order = ['parameters', 'buffers', 'optimizer_state', 'gradients', 'inputs', 'activations', 'kv_cache'];
  const rank = (i) => { const at = order.indexOf(app.doc.classes[i].name); return at < 0 ? order.length + i : at; };
  return app.doc.classes.map((_, i) => i).sort((a, b) => rank(a) - rank(b));
}

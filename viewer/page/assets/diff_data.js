/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the document of a comparison: two tracks, old and new, and their differences. */

const SIDES = ['old', 'new'];

/* Reads the part for the first picture. */
function readHead(doc) {
  const d = doc.diff = doc.head, text = (i) => doc.texts[i];
  d.headline = text(d.headline);
  d.not_compared = text(d.not_compared);
  d.besides = d.besides.map(([what, a, b]) => ({ what, old: text(a), new: text(b) }));
  for (const f of d.findings) f.text = text(f.text);
  d.weights = [];
}

function readDiff(doc, d) {
  const text = (i) => doc.texts[i];
  const rows = (of) => { const c = new Column(of), all = []; while (!c.done()) all.push([c.number(), c.number(), c.number()]); return all; };
  d.classes = rows(d.classes).map(([category, a, b]) => ({ category, name: doc.classes[category].words, old: a, new: b }));
  d.phases = rows(d.phases).map(([phase, a, b]) => ({ name: doc.phases[phase], old: a, new: b }));
  d.modules = rows(d.modules).map(([name, a, b]) => ({ name: text(name), old: a, new: b }));
  d.lines = readLines(doc, new Column(d.lines));
  d.nodes = readPaths(doc, new Column(d.paths));
  d.weights = readWeights(new Column(d.weights));
  d.peak_weights = readWeights(new Column(d.peak_weights));
  Object.assign(doc.diff, d);
}

const readOwner = (doc, c) => ({ fn: doc.texts[c.number()], file: doc.texts[c.number()], line: c.number(), backward: c.number() });

function readLines(doc, c) {
  const rows = [];
  while (!c.done()) {
    const r = { category: c.number(), was: readOwner(doc, c), is: readOwner(doc, c), old: c.number(), new: c.number(), blocksOld: c.number(), blocksNew: c.number() };
    r.owner = r.is.fn || r.is.file ? r.is : r.was;
    r.name = originText(r.owner);
    rows.push(r);
  }
  return rows;
}

/* Node 0 is the root. line: in the new version, was: in the old one; 0 = not there. */
function readPaths(doc, c) {
  const nodes = [{ caller: 0, fn: 'all', file: '', line: 0, was: 0 }];
  while (!c.done()) {
    const caller = nodes.length - c.number();
    nodes.push({ caller, fn: doc.texts[c.number()], file: doc.texts[c.number()], line: c.number(), was: c.number(), backward: c.number() });
  }
  return nodes;
}

function readWeights(c) {
  const rows = [];
  while (!c.done()) rows.push({ node: c.number(), category: c.number(), finding: c.number(), old: c.number(), blocksOld: c.number(), new: c.number(), blocksNew: c.number() });
  return rows;
}

/* The change in a word, because colours alone are not enough. */
function changeWord(before, after) {
  if (before === after) return 'same';
  if (!before) return 'new';
  if (!after) return 'gone';
  return after > before ? 'grown' : 'shrunk';
}

function percentText(before, after) {
  if (!before || before === after) return '';
  if (after >= 100 * before) return Math.floor(after / before) + ' times';
  const p = 100 * (after - before) / before;
  return (p < 0 ? '-' : '+') + fixed(Math.abs(p), 1) + ' %';
}

function commitOf(t) {
  const commit = factOf(t, 'commit');
  return commit ? 'commit ' + commit.slice(0, 7) : 'no commit';
}

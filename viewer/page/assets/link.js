/* SPDX-License-Identifier: Apache-2.0 */
/* The moment, the classes shown, the view and the filters are kept in the page's address after the #, so that a link, a
 * reload and the browser's back button restore them. */

/* Names of the filters in the address. */
const FILTER_WORDS = { text: 'text', category: 'of', least: 'size', age: 'age', thread: 'thread', stream: 'stream' };

function linkState(timeline) {
  const first = app.track;
  let wait = 0;

  /* A class is stored by name, because its number may change between versions. */
  function filterWord(name) {
    const value = filters[name];
    if (!value || (name === 'age' && ['0', 'mark'].includes(value))) return '';
    return encodeURIComponent(name === 'category' ? app.doc.classes[value].name : value);
  }

  /* An unknown word selects nothing. */
  function filterOf(name, word) {
    const one = (all, otherwise) => (all.includes(word) ? word : otherwise);
    if (name === 'text') return word;
    if (name === 'category') return one(app.doc.classes.map((c) => c.name), '') && String(app.doc.classes.findIndex((c) => c.name === word));
    if (name === 'least') return Number(one(SIZES.map(([n]) => String(n)), 0));
    return name === 'age' ? one(AGES.map(([age]) => age), '0') : one(app.track.contexts.map((c) => c[name]), '');
  }

  function address() {
    const t = app.track, [classes, zoom, show] = timeline.state();
    const one = t.rank !== '' && app.doc.tracks.filter((x) => x.rank === t.rank).length === 1;
    const parts = [[one ? 'rank' : 'track', t === first ? '' : one ? t.rank : t.index], ['at', app.seq], ['class', classes], ['zoom', zoom], ['show', show], ['block', app.block ? app.block.seq : ''], ['since', app.mark || ''], ...Object.entries(FILTER_WORDS).map(([name, word]) => [word, filterWord(name)])].filter(([, v]) => v !== '');
    return parts.length === 1 && app.seq === t.peak_seq ? '#' : '#' + parts.map((p) => p.join('=')).join('&');
  }

  function restore() {
    const given = new URLSearchParams(location.hash.slice(1)), at = Number(given.get('at'));
    if (location.hash && !given.has('at')) return; /* the address names a panel */
    const track = app.doc.tracks.find((t) => given.has('rank') && String(t.rank) === given.get('rank')) || app.doc.tracks[given.get('track')] || first;
    if (track !== app.track) chooseTrack(track.index);
    timeline.look(given.has('class') ? given.get('class').split(',') : null, given.get('zoom'), given.get('show'));
    chooseMoment(at > 0 && at <= track.last_seq ? at : track.peak_seq);
    app.mark = Number(given.get('since')) || 0;
    for (const [name, word] of Object.entries(FILTER_WORDS)) setFilter(name, filterOf(name, given.get(word) || ''));
    if (app.mark) setFilter('age', 'mark');
    chooseBlock(given.has('block') && livesOf(app.doc, track).find((b) => b.seq === Number(given.get('block'))) || null);
  }

  function keep() {
    if ((location.hash || '#') !== address()) history.pushState(null, '', address());
  }

  /* A link to a panel scrolls there and does not change the address. */
  function go(e) {
    const link = e.target.closest('a[href^="#"]'), panel = link && document.getElementById(link.getAttribute('href').slice(1));
    if (!panel || e.ctrlKey || e.metaKey || e.shiftKey) return;
    e.preventDefault();
    panel.scrollIntoView();
    panel.focus({ preventScroll: true });
  }

  for (const what of ['view', 'moment', 'track', 'block', 'filter']) on(what, () => { clearTimeout(wait); wait = setTimeout(keep, 250); });
  window.addEventListener('hashchange', restore);
  document.addEventListener('click', go);
  document.getElementById('theme').before(h('button', { type: 'button', class: 'plain', onclick: (e) => navigator.clipboard.writeText(location.href).then(() => { e.target.textContent = 'Copied'; }, () => { e.target.textContent = 'The address is the link'; }) }, 'Copy link'));
  restore();
}

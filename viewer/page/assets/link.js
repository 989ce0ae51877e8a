/* SPDX-License-Identifier: Apache-2.0 */
/* The moment, the classes shown, the stretch in view and the text searched for stand behind the # of the page's address: a
 * link, a reload and the browser's way back restore them. */

function linkState(timeline) {
  const first = app.track;
  let wait = 0;

  function address() {
    const t = app.track, [classes, zoom] = timeline.state();
    const one = t.rank !== '' && app.doc.tracks.filter((x) => x.rank === t.rank).length === 1;
    const parts = [[one ? 'rank' : 'track', t === first ? '' : one ? t.rank : t.index], ['at', app.seq], ['class', classes], ['zoom', zoom], ['block', app.block ? app.block.seq : ''], ['since', app.mark || ''], ['text', encodeURIComponent(filters.text)]].filter(([, v]) => v !== '');
    return parts.length === 1 && app.seq === t.peak_seq ? '#' : '#' + parts.map((p) => p.join('=')).join('&');
  }

  function restore() {
    const given = new URLSearchParams(location.hash.slice(1)), at = Number(given.get('at'));
    if (location.hash && !given.has('at')) return; /* it names a panel */
    const track = app.doc.tracks.find((t) => given.has('rank') && String(t.rank) === given.get('rank')) || app.doc.tracks[given.get('track')] || first;
    if (track !== app.track) chooseTrack(track.index);
    timeline.look(given.has('class') ? given.get('class').split(',') : null, given.get('zoom'));
    chooseMoment(at > 0 && at <= track.last_seq ? at : track.peak_seq);
    app.mark = Number(given.get('since')) || 0;
    if (app.mark) setFilter('age', 'mark');
    setFilter('text', given.get('text') || '');
    chooseBlock(given.has('block') && livesOf(app.doc, track).find((b) => b.seq === Number(given.get('block'))) || null);
  }

  function keep() {
    if ((location.hash || '#') !== address()) history.pushState(null, '', address());
  }

  /* A link to a panel moves there and leaves the address as it is. */
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

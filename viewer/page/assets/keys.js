/* SPDX-License-Identifier: Apache-2.0 */
/* Help for keys and mouse on `?`; and what Escape closes if nothing else handles the key. */

const KEYS = [
  ['\u2190 \u2192', 'in the timeline: the moment before, the one after; with Shift in larger steps'], ['Home End', 'the first and the last moment'], ['M', 'mark this moment: at a later one the blocks made since are shown'], ['P', 'the peak (with two runs the new one; O the old one)'],
  ['+ \u2212 0', 'zoom in, zoom out, show all'], ['[ ]', 'move the view'], ['\u2191 \u2193 Page up Page down', 'in the blocks: another block; in the events: the one before, the next; in the flame graph: up, down and beside'],
  ['Escape', 'close the block, show all again, leave a frame'], ['Click', 'choose a moment, a block, a frame, a class to show or hide; with Shift that class alone'],
  ['Drag', 'zoom into a stretch; with Shift move the view'], ['Ctrl and wheel', 'zoom at the pointer'], ['Double click', 'show all'], ['?', 'these lines'],
];

function keysHelp() {
  const close = h('button', { type: 'button', class: 'close', 'aria-label': 'Close', onclick: () => dialog.close() }, '\u00d7');
  const dialog = h('dialog', { class: 'card', 'aria-label': 'Keys and mouse' }, close, h('h2', {}, 'Keys and mouse'),
    h('dl', { class: 'keys' }, KEYS.flatMap(([key, what]) => [h('dt', {}, key), h('dd', {}, what)])));
  document.body.append(dialog);
  document.getElementById('theme').before(h('button', { type: 'button', id: 'help', class: 'plain', 'aria-label': 'Keys and mouse', onclick: () => dialog.showModal() }, '?'));
  document.addEventListener('keydown', (e) => {
    if (e.defaultPrevented || e.ctrlKey || e.metaKey || e.altKey || dialog.open || e.target.matches('input, select')) return;
    if (e.key === '?') dialog.showModal();
    if (e.key === 'Escape' && app.block) chooseBlock(null);
  });
}

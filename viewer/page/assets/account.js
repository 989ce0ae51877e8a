/* SPDX-License-Identifier: Apache-2.0 */
/* Published formulas of training memory beside measured figures. */

const SECTIONS = [['parameters', 'Bytes for each parameter'], ['activations', 'Activations'],
  ['peak', 'The peak: parameters + state + max(gradients + temporaries, activations)'], ['residual', 'Residual memory at the peak'], ['out_of_memory', 'When memory ran out']];

function accountPanel() {
  const p = panel('account', 'Formulas');
  const value = (row, key) => {
    const v = row[key];
    if (v === undefined) return '';
    return row.unit === 'bytes' ? bytesText(Math.max(0, Math.floor(v))) : row.unit === 'count' ? countText(Math.floor(v)) : fixed(v, 2);
  };
  /* A title that begins with spaces is a part of the row above it. */
  const title = (r) => h('span', { class: 'part', style: { '--depth': r.title.search(/\S/) / 2 } }, r.title.trim());
  const idle = (r) => r.formula === undefined && !r.note && !r.measured;
  function show() {
    const a = app.track.account;
    p.show(Boolean(a));
    if (!a) return;
    p.note('Step ' + a.step + ' as measured, beside published formulas of training memory');
    const rows = SECTIONS.flatMap(([name, heading]) => {
      const of = a.rows.filter((r) => r.section === name && !idle(r));
      return of.length ? [{ props: { class: 'section' }, cells: [heading, '', '', ''] }, ...of.map((r) => [title(r), value(r, 'measured'), value(r, 'formula'), r.note])] : [];
    });
    replace(p.body, h('p', { class: 'note' }, 'Shape: ' + a.shape.map((f) => f.name.replace('_', ' ') + ' ' + countText(f.value) + ' (' + f.source + ')').join(', ')),
      table([{ title: 'quantity' }, { title: 'measured', right: true }, { title: 'by formula', right: true }, { title: 'note', class: 'wide' }], rows, { class: 'account' }));
  }
  on('track', show);
}

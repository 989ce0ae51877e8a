/* SPDX-License-Identifier: Apache-2.0 */
/* The published accounts of training memory beside what was measured. */

const SECTIONS = [['parameters', 'Bytes for each parameter'], ['activations', 'Activations'],
  ['peak', 'The peak: parameters + state + max(gradients + temporaries, activations)'], ['residual', 'Residual memory at the peak'], ['out_of_memory', 'When memory ran out']];

function accountPanel() {
  const p = panel('account', 'Account');
  const value = (row, key) => {
    const v = row[key];
    if (v === undefined) return '';
    return row.unit === 'bytes' ? bytesText(Math.max(0, Math.floor(v))) : row.unit === 'count' ? countText(Math.floor(v)) : fixed(v, 2);
  };
  function show() {
    const a = app.track.account;
    p.show(Boolean(a));
    if (!a) return;
    p.note('What people\u2019s formulas say of step ' + a.step + ', beside what was measured');
    const rows = SECTIONS.flatMap(([name, title]) => {
      const of = a.rows.filter((r) => r.section === name);
      return of.length ? [{ props: { class: 'section' }, cells: [title, '', '', ''] }, ...of.map((r) => [r.title, value(r, 'measured'), value(r, 'formula'), r.note])] : [];
    });
    replace(p.body, h('p', { class: 'note' }, 'Shape: ' + a.shape.map((f) => f.name.replace('_', ' ') + ' ' + countText(f.value) + ' (' + f.source + ')').join(', ')),
      table([{ title: '' }, { title: 'measured', right: true }, { title: 'by formula', right: true }, { title: '', class: 'wide' }], rows, { class: 'account' }));
  }
  on('track', show);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Light and dark theme: the system's, until the reader chooses one, which is remembered. On paper always light. */

function themeSwitch() {
  const dark = window.matchMedia('(prefers-color-scheme: dark)'), button = document.getElementById('theme'), NAME = 'gpumemtrace-theme';
  let chosen = null, printing = false;
  /* A page in a frame might have no localStorage. */
  try { chosen = localStorage.getItem(NAME); } catch { /* not remembered */ }
  const isDark = () => !printing && (chosen || (dark.matches ? 'dark' : 'light')) === 'dark';
  const show = () => {
    styles.clear();
    document.documentElement.dataset.theme = isDark() ? 'dark' : 'light';
    button.textContent = isDark() ? 'Light' : 'Dark';
    tell('theme');
  };
  button.addEventListener('click', () => {
    chosen = isDark() ? 'light' : 'dark';
    try { localStorage.setItem(NAME, chosen); } catch { /* not remembered */ }
    show();
  });
  dark.addEventListener('change', show);
  /* Printing uses the canvases as they are, so they are painted at once, after the colours have changed. */
  const print = (yes) => { printing = yes; show(); document.querySelectorAll('canvas').forEach((c) => c.paint && c.paint()); };
  window.addEventListener('beforeprint', () => print(true));
  window.addEventListener('afterprint', () => print(false));
  show();
}

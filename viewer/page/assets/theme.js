/* SPDX-License-Identifier: Apache-2.0 */
/* Light and dark: as the system has it, until the reader says otherwise. */

function themeSwitch() {
  const dark = window.matchMedia('(prefers-color-scheme: dark)'), button = document.getElementById('theme');
  const isDark = () => (document.documentElement.dataset.theme || (dark.matches ? 'dark' : 'light')) === 'dark';
  const show = () => { styles.clear(); button.textContent = isDark() ? 'Light' : 'Dark'; tell('theme'); };
  button.addEventListener('click', () => { document.documentElement.dataset.theme = isDark() ? 'light' : 'dark'; show(); });
  dark.addEventListener('change', show);
  show();
}

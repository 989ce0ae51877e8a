/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers as people read them: the same words as the tool's own text. */

/* Rounds halves to the even digit, as printf does. */
function fixed(x, digits) {
  const scaled = x * 10 ** digits, low = Math.floor(scaled);
  if (scaled - low === 0.5) return ((low % 2 ? low + 1 : low) / 10 ** digits).toFixed(digits);
  return x.toFixed(digits);
}

function bytesText(n) {
  if (n < 0) return '-' + bytesText(-n);
  if (n < 1024) return n + ' B';
  const units = ['KiB', 'MiB', 'GiB', 'TiB', 'PiB', 'EiB'];
  let value = n / 1024, u = 0;
  for (; value >= 1023.95 && u < 5; u++) value /= 1024;
  return fixed(value, 1) + ' ' + units[u];
}

const countText = (n) => String(Math.round(n)).replace(/\B(?=(\d{3})+$)/g, ',');
const exactText = (n) => countText(n) + ' B';

function secondsText(ns) {
  const s = ns / 1e9;
  if (ns < 0) return '-' + secondsText(-ns);
  if (ns < 1000) return ns + ' ns';
  if (s < 0.001) return fixed(s * 1e6, 0) + ' us';
  if (s < 0.1) return fixed(s * 1e3, 1) + ' ms';
  if (s < 100) return fixed(s, 2) + ' s';
  const whole = Math.round(s), two = (n) => String(n).padStart(2, '0');
  if (whole < 3600) return Math.floor(whole / 60) + ' min ' + two(whole % 60) + ' s';
  if (whole < 2 * 86400) return Math.floor(whole / 3600) + ' h ' + two(Math.floor(whole / 60) % 60) + ' min';
  return Math.floor(whole / 86400) + ' days ' + Math.floor(whole / 3600) % 24 + ' h';
}

const shareText = (part, all) => fixed(all ? 100 * part / all : 0, 0) + ' %';
const growthText = (n) => n === 0 ? '0' : (n > 0 ? '+' : '-') + bytesText(Math.abs(n));
const plural = (n, word) => countText(n) + ' ' + word + (n === 1 ? '' : 's');
const baseName = (path) => path.slice(path.lastIndexOf('/') + 1);

/* Escapes bytes that are not text, control characters, and marks that change the direction of text. */
function visible(text) {
  const hex = (c, n) => c.toString(16).padStart(n, '0');
  return text.replace(/[\u0000-\u001f\u007f-\u009f\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|\udb40[\udc00-\udc7f]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g,
    (c) => {
      const code = c.charCodeAt(0);
      if (code >= 0xdc80 && code <= 0xdcff) return '\\x' + hex(code & 0xff, 2);
      return c.length > 1 ? '\\U000e00' + hex(c.charCodeAt(1) & 0x7f, 2) : code < 256 ? (code < 128 ? '\\x' : '\\xc2\\x') + hex(code, 2) : '\\u' + hex(code, 4);
    });
}

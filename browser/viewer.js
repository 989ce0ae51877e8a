/* SPDX-License-Identifier: Apache-2.0 */
/* The page without a server: takes files, has a worker run the command on them, and shows the page that the command writes. */
'use strict';

const $ = (id) => document.getElementById(id);
const NAME = 'page.html';
let worker = null, shown = null;

const baseName = (name) => name.slice(name.lastIndexOf('/') + 1);

/* ---- what to open: { names: as the command gets them, files: [{ name, blob }] } ---- */

/* A live file beside its recording is no recording of its own. */
function operandsOf(files, folders) {
  const names = files.map((f) => f.name);
  return [...folders, ...names.filter((name) => !folders.some((f) => name.startsWith(f + '/')) && !(name.endsWith('.live') && names.includes(name.slice(0, -5))))];
}

/* Of two runs the older one comes first. Files of one name get a folder each. */
function choose(files, folders) {
  const taken = new Set();
  files.sort((a, b) => (a.blob.lastModified || 0) - (b.blob.lastModified || 0));
  for (const f of files) {
    for (let n = 2, name = f.name; taken.has(f.name); n++) f.name = n + '/' + name;
    taken.add(f.name);
  }
  return { files, names: operandsOf(files, folders) };
}

/* Everything below a folder that was dropped. */
async function listEntry(entry, found) {
  if (entry.isFile) {
    found.push({ name: entry.fullPath.slice(1), blob: await new Promise((resolve, reject) => entry.file(resolve, reject)) });
    return;
  }
  const reader = entry.createReader();
  for (let part; (part = await new Promise((resolve, reject) => reader.readEntries(resolve, reject))).length;)
    for (const e of part) await listEntry(e, found);
}

async function openDropped(data) {
  const entries = [...data.items].map((item) => item.webkitGetAsEntry?.()).filter(Boolean);
  const plain = [...data.files].map((blob) => ({ name: blob.name, blob })), found = [];
  if (!entries.some((e) => e.isDirectory)) return open(choose(plain, []));
  for (const e of entries) await listEntry(e, found);
  return open(choose(found, entries.filter((e) => e.isDirectory).map((e) => e.name)));
}

function ask(folder) {
  const input = document.createElement('input');
  input.type = 'file';
  input.multiple = true;
  input.webkitdirectory = folder;
  input.addEventListener('change', () => {
    const files = [...input.files].map((blob) => ({ name: blob.webkitRelativePath || blob.name, blob }));
    if (files.length) open(choose(files, folder ? [files[0].name.split('/')[0]] : []));
  });
  input.click();
}

async function fetchFile(url, say) {
  const name = decodeURIComponent(baseName(new URL(url, location.href).pathname)) || 'recording';
  const answer = await fetch(url).catch(() => { throw new Error(url + ' cannot be fetched: there is no such server, or it does not let other pages read it'); });
  if (!answer.ok) throw new Error(url + ': the server says ' + answer.status + ' ' + answer.statusText);
  const parts = [], all = Number(answer.headers.get('content-length')), reader = answer.body.getReader();
  for (let got, bytes = 0; !(got = await reader.read()).done;) {
    parts.push(got.value);
    say('fetching ' + name, all ? 100 * (bytes += got.value.length) / all : null);
  }
  return { name, blob: new Blob(parts) };
}

const linked = () => new URLSearchParams(location.hash.slice(1)).getAll('url');

async function openLinked() {
  try {
    const files = [];
    for (const url of linked()) files.push(await fetchFile(url, progress));
    open(choose(files, []));
  } catch (e) {
    fail(e.message);
  }
}

/* ---- what the reader of the page sees ---- */

function progress(text, percent) {
  $('state').className = '';
  $('state').textContent = text;
  $('progress').hidden = false;
  if (percent === null) $('progress').removeAttribute('value');
  else $('progress').value = percent;
}

function start() {
  shown?.frame.remove();
  if (shown) URL.revokeObjectURL(shown.url);
  shown = null;
  $('bar').hidden = $('progress').hidden = true;
  $('start').hidden = false;
  document.title = 'gpumemtrace';
}

function fail(text) {
  start();
  $('state').className = 'alarm';
  $('state').textContent = text;
}

function button(text, act) {
  const b = document.createElement('button');
  Object.assign(b, { type: 'button', className: 'plain', textContent: text, onclick: act });
  return b;
}

function show(page, what, asRanks, notes) {
  const frame = document.createElement('iframe'), two = what.names.length === 2;
  start();
  shown = { frame, url: URL.createObjectURL(page) };
  frame.title = 'The page of ' + what.names.join(', ');
  frame.src = shown.url;
  frame.addEventListener('load', () => frame.focus());
  $('names').textContent = what.names.join(two && !asRanks ? ' \u2192 ' : ', ');
  document.title = $('names').textContent + ' - gpumemtrace';
  $('notes').textContent = notes;
  $('actions').replaceChildren(...two && !asRanks ? [button('Swap', () => open({ ...what, names: what.names.slice().reverse() }))] : [],
    ...two ? [button(asRanks ? 'Show as old and new' : 'Show as ranks', () => open(what, !asRanks))] : [], button('Close', start));
  $('bar').hidden = false;
  $('start').hidden = true;
  $('state').textContent = '';
  document.body.append(frame);
}

/* Lines that the command said, without its name; the part behind a return is progress. */
function sentences(said) {
  return said.split('\n').map((line) => line.slice(line.lastIndexOf('\r') + 1).replace(/^\u001b\[K/, '').replace(/^gpumemtrace[^:]*: /, '')).filter(Boolean).join('\n');
}

function open(what, asRanks) {
  const words = what.names.length === 2 && !asRanks ? ['diff', ...what.names, '-o', NAME] : ['html', ...what.names, '-o', NAME];
  let said = '';
  run(words, what.files, {
    said(text) {
      const last = (said += text).slice(said.lastIndexOf('\r') + 1), percent = last.match(/^(.*?) +(\d+) %$/);
      if (percent) progress('reading ' + percent[1], Number(percent[2]));
    },
    done({ code, page, broken }) {
      if (page) show(page, what, asRanks, sentences(said));
      else if (broken) fail('The reader stopped, which is a defect of it: ' + broken);
      else fail(sentences(said) || 'The command ended with ' + code);
    },
  });
  progress('reading ' + what.names.join(', '), null);
}

/* ---- the worker: one for each run of the command, so that its memory is released ---- */

function unbase64(text) {
  const bytes = atob(text.trim()), out = new Uint8Array(bytes.length);
  for (let i = 0; i < bytes.length; i++) out[i] = bytes.charCodeAt(i);
  return out;
}

function run(words, files, { said, done }) {
  const url = URL.createObjectURL(new Blob([$('worker').textContent], { type: 'text/javascript' }));
  worker?.terminate();
  const own = worker = new Worker(url);
  const end = (result) => {
    own.terminate();
    URL.revokeObjectURL(url);
    if (own === worker) done(result);
  };
  own.onmessage = ({ data }) => (data.said === undefined ? end(data) : own === worker && said(data.said));
  own.onerror = (e) => end({ code: 3, broken: e.message });
  own.postMessage({ packed: unbase64($('module').textContent), words, files, output: NAME });
}

/* ---- begin ---- */

function begin() {
  const dark = window.matchMedia('(prefers-color-scheme: dark)'), theme = () => { document.documentElement.dataset.theme = dark.matches ? 'dark' : 'light'; };
  theme();
  dark.addEventListener('change', theme);
  if (!linked().length) { /* without a link nothing is asked of the network */
    const policy = document.createElement('meta');
    Object.assign(policy, { httpEquiv: 'Content-Security-Policy', content: "connect-src 'none'" });
    document.head.append(policy);
  }
  window.addEventListener('hashchange', () => location.reload());
  $('files').addEventListener('click', () => ask(false));
  $('folder').addEventListener('click', () => ask(true));
  for (const event of ['dragover', 'dragleave', 'drop'])
    window.addEventListener(event, (e) => {
      e.preventDefault();
      document.body.classList.toggle('over', event === 'dragover');
      if (event === 'drop') openDropped(e.dataTransfer).catch((error) => fail(error.message));
    });
  if (linked().length) openLinked();
  document.documentElement.dataset.ready = '';
}

begin();

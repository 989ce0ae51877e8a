/* SPDX-License-Identifier: Apache-2.0 */
/* The worker's part: runs the command once on the files that it is given, and says what came of it. */
const reader = new FileReaderSync();

onmessage = async ({ data: { packed, words, files, output } }) => {
  const named = new Map(files.map(({ name, blob }) => [name, new BlobFile(blob, (part) => new Uint8Array(reader.readAsArrayBuffer(part)))]));
  let printed = '';
  const terminal = { out: new Terminal((text) => { printed += text; }), err: new Terminal((text) => postMessage({ said: text })) };
  try {
    const unpacked = new Response(new Blob([packed]).stream().pipeThrough(new DecompressionStream('gzip'))).arrayBuffer();
    const code = runModule(await WebAssembly.compile(await unpacked), ['gpumemtrace', ...words], named, terminal);
    postMessage({ code, printed, page: code < 2 && named.get(output)?.blob('text/html') });
  } catch (e) {
    postMessage({ code: 3, printed, broken: e.message });
  }
};

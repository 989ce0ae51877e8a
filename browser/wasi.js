/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The system that the module runs on (WASI preview 1), as far as it asks for it: files by name, its
 * words, the time. Files that were opened in the browser are read a window at a time and never as a
 * whole; those that the module writes are kept in pieces. Runs in a worker.
 */
const OK = 0, BADF = 8, EXIST = 20, INVAL = 28, ISDIR = 31, NOENT = 44, NOSYS = 52, PERM = 63;
const TERMINAL = 2, FOLDER = 3, FILE = 4;
const PIECE = 1 << 20;

/* A file of the browser: a Blob, and the piece of it that was read last. readBlob: a Blob's bytes. */
class BlobFile {
  constructor(blob, readBlob) {
    Object.assign(this, { blob, readBlob, size: blob.size, time: blob.lastModified || 0, piece: new Uint8Array(0), from: 0 });
  }
  read(at, into) {
    let done = 0;
    for (let n = 1; n && done < into.length; done += n) {
      if (at + done < this.from || at + done >= this.from + this.piece.length) {
        this.from = at + done;
        this.piece = this.readBlob(this.blob.slice(this.from, this.from + PIECE));
      }
      const part = this.piece.subarray(at + done - this.from).subarray(0, into.length - done);
      into.set(part, done);
      n = part.length;
    }
    return done;
  }
}

/* A file of the module's own. */
class MemoryFile {
  constructor() {
    Object.assign(this, { pieces: [], size: 0, time: 0 });
  }
  /* Calls step(part of a piece, part of bytes) from byte `at` on. */
  walk(at, bytes, step) {
    for (let done = 0; done < bytes.length;) {
      const first = (at + done) % PIECE, n = Math.min(bytes.length - done, PIECE - first);
      step(this.pieces[Math.floor((at + done) / PIECE)].subarray(first, first + n), bytes.subarray(done, done + n));
      done += n;
    }
    return bytes.length;
  }
  read(at, into) {
    return this.walk(at, into.subarray(0, Math.max(0, Math.min(into.length, this.size - at))), (piece, part) => part.set(piece));
  }
  write(at, bytes) {
    this.resize(Math.max(this.size, at + bytes.length));
    return this.walk(at, bytes, (piece, part) => piece.set(part));
  }
  resize(size) {
    while (this.pieces.length * PIECE < size) this.pieces.push(new Uint8Array(PIECE));
    if (size < this.size) this.walk(size, new Uint8Array(this.pieces.length * PIECE - size), (piece) => piece.fill(0));
    this.size = size;
  }
  blob(type) {
    return new Blob(this.pieces.map((piece, i) => piece.subarray(0, Math.max(0, this.size - i * PIECE))), { type });
  }
}

/* What the module prints: to(text). */
class Terminal {
  constructor(to) {
    Object.assign(this, { to, size: 0, time: 0, decoder: new TextDecoder() });
  }
  read() { return 0; }
  write(at, bytes) {
    this.to(this.decoder.decode(bytes, { stream: true }));
    return bytes.length;
  }
}

class Ended extends Error {
  constructor(code) {
    super('ended');
    this.code = code;
  }
}

/* Runs the module: words of its command line; files: a Map of files by name. Returns its exit code. */
function runModule(module, words, files, terminal) {
  const open = [new MemoryFile(), terminal.out, terminal.err].map((file) => ({ file, at: 0 }));
  open.push({ folder: '', at: 0 });
  let memory, view = new DataView(new ArrayBuffer(0));
  const data = () => (view.buffer === memory.buffer ? view : (view = new DataView(memory.buffer)));
  const bytes = (at, n) => new Uint8Array(memory.buffer, at >>> 0, n >>> 0);
  const set32 = (at, n) => data().setUint32(at >>> 0, n, true);
  const set64 = (at, n) => data().setBigUint64(at >>> 0, BigInt(n), true);
  const isFolder = (path) => path === '' || [...files.keys()].some((name) => name.startsWith(path + '/'));

  /* The name of a path below an open folder, without . and .. */
  function nameOf(fd, at, length) {
    const parts = [];
    for (const part of (open[fd].folder + '/' + new TextDecoder().decode(bytes(at, length).slice())).split('/'))
      if (part === '..') parts.pop();
      else if (part && part !== '.') parts.push(part);
    return parts.join('/');
  }

  function find(name) {
    const own = name.match(/^proc\/self\/fd\/(\d+)$/);
    return own ? open[own[1]]?.file : files.get(name);
  }

  function add(entry) {
    let fd = 3;
    while (open[fd]) fd++;
    open[fd] = entry;
    return fd;
  }

  /* Reads or writes the parts of memory that a list of vectors names. */
  function transfer(file, at, vectors, count, result, how) {
    let all = 0;
    for (let i = 0; i < count; i++) {
      const v = vectors + 8 * i, part = bytes(data().getUint32(v, true), data().getUint32(v + 4, true));
      const n = file[how](at + all, part);
      all += n;
      if (n < part.length) break;
    }
    set32(result, all);
    return all;
  }

  function inTurn(fd, vectors, count, result, how) {
    const entry = open[fd];
    if (!entry?.file?.[how]) return entry?.folder === undefined ? BADF : ISDIR;
    entry.at += transfer(entry.file, entry.at, vectors, count, result, how);
    return OK;
  }

  function writeState(at, file, name) {
    bytes(at, 64).fill(0);
    set64(at + 8, file ? [...name].reduce((hash, c) => (hash * 31 + c.codePointAt(0)) % 2 ** 32, 1) : 1);
    data().setUint8(at + 16, file instanceof Terminal ? TERMINAL : file ? FILE : FOLDER);
    set64(at + 24, 1);
    set64(at + 32, file ? file.size : 0);
    for (const t of [40, 48, 56]) set64(at + t, Math.round((file ? file.time : 0) * 1e6));
    return OK;
  }

  function writeList(list, pointers, text) {
    for (const item of list) {
      const encoded = new TextEncoder().encode(item + '\0');
      set32(pointers, text);
      bytes(text, encoded.length).set(encoded);
      pointers += 4;
      text += encoded.length;
    }
    return OK;
  }

  function writeSizes(list, count, size) {
    set32(count, list.length);
    set32(size, list.reduce((all, item) => all + new TextEncoder().encode(item).length + 1, 0));
    return OK;
  }

  const calls = {
    args_sizes_get: (count, size) => writeSizes(words, count, size),
    args_get: (pointers, text) => writeList(words, pointers, text),
    environ_sizes_get: (count, size) => writeSizes([], count, size),
    environ_get: () => OK,
    clock_time_get(clock, precision, at) {
      set64(at, Math.round((clock === 0 ? Date.now() : performance.now()) * 1e6));
      return OK;
    },
    proc_exit(code) { throw new Ended(code); },
    fd_prestat_get(fd, at) {
      if (fd !== 3) return BADF;
      set32(at, 0);
      set32(at + 4, 1);
      return OK;
    },
    fd_prestat_dir_name(fd, at) {
      bytes(at, 1)[0] = 47; /* / */
      return OK;
    },
    fd_fdstat_get(fd, at) {
      if (!open[fd]) return BADF;
      bytes(at, 24).fill(0);
      data().setUint8(at, open[fd].file === terminal.err ? TERMINAL : open[fd].file ? FILE : FOLDER);
      /* A terminal is one that cannot be sought in. */
      set64(at + 8, open[fd].file === terminal.err ? 0xfffffffffffffn & ~0x24n : 0xfffffffffffffn);
      set64(at + 16, 0xfffffffffffffn);
      return OK;
    },
    fd_fdstat_set_flags: () => OK,
    fd_filestat_get: (fd, at) => (open[fd] ? writeState(at, open[fd].file, open[fd].name || '') : BADF),
    fd_filestat_set_size(fd, size) {
      if (!open[fd]?.file?.resize) return INVAL;
      open[fd].file.resize(Number(size));
      return OK;
    },
    fd_read: (fd, vectors, count, result) => inTurn(fd, vectors, count, result, 'read'),
    fd_write: (fd, vectors, count, result) => inTurn(fd, vectors, count, result, 'write'),
    fd_pread(fd, vectors, count, at, result) {
      if (!open[fd]?.file) return open[fd] ? ISDIR : BADF;
      transfer(open[fd].file, Number(at), vectors, count, result, 'read');
      return OK;
    },
    fd_seek(fd, offset, whence, result) {
      const entry = open[fd];
      if (!entry?.file) return BADF;
      entry.at = Number(offset) + [0, entry.at, entry.file.size][whence];
      set64(result, entry.at);
      return OK;
    },
    fd_sync: () => OK,
    fd_close(fd) {
      if (!open[fd]) return BADF;
      open[fd] = undefined;
      return OK;
    },
    fd_readdir(fd, at, room, cookie, result) {
      const encoder = new TextEncoder(), below = open[fd].folder ? open[fd].folder + '/' : '';
      const names = [...new Set([...files.keys()].filter((name) => name.startsWith(below)).map((name) => name.slice(below.length).split('/')[0]))];
      let used = 0;
      for (let i = Number(cookie); i < names.length && used < room; i++) {
        const name = encoder.encode(names[i]), entry = new DataView(new ArrayBuffer(24 + name.length));
        entry.setBigUint64(0, BigInt(i + 1), true);
        entry.setBigUint64(8, BigInt(i + 2), true);
        entry.setUint32(16, name.length, true);
        entry.setUint8(20, files.has(below + names[i]) ? FILE : FOLDER);
        new Uint8Array(entry.buffer).set(name, 24);
        bytes(at + used, Math.min(entry.byteLength, room - used)).set(new Uint8Array(entry.buffer, 0, Math.min(entry.byteLength, room - used)));
        used += Math.min(entry.byteLength, room - used);
      }
      set32(result, used);
      return OK;
    },
    path_create_directory: () => PERM,
    path_filestat_get(fd, flags, path, length, at) {
      const name = nameOf(fd, path, length), file = find(name);
      return file || isFolder(name) ? writeState(at, file, name) : NOENT;
    },
    path_open(fd, look, path, length, flags, rights, inheriting, fdflags, result) {
      const name = nameOf(fd, path, length), create = flags & 1, folderOnly = flags & 2, alone = flags & 4, cut = flags & 8;
      let file = find(name);
      if (!file && isFolder(name)) {
        set32(result, add({ folder: name, at: 0 }));
        return create ? ISDIR : OK;
      }
      if (file && create && alone) return EXIST;
      if (!file && (!create || folderOnly)) return NOENT;
      if (!file) files.set(name, file = new MemoryFile());
      if (cut && file.resize) file.resize(0);
      set32(result, add({ file, name, at: 0 }));
      return OK;
    },
    path_rename(fd, path, length, other, to, toLength) {
      const from = nameOf(fd, path, length);
      if (!files.has(from)) return NOENT;
      files.set(nameOf(other, to, toLength), files.get(from));
      files.delete(from);
      return OK;
    },
    path_unlink_file: (fd, path, length) => (files.delete(nameOf(fd, path, length)) ? OK : NOENT),
    poll_oneoff: () => NOSYS,
  };
  const instance = new WebAssembly.Instance(module, { wasi_snapshot_preview1: calls });
  memory = instance.exports.memory;
  try {
    instance.exports._start();
  } catch (e) {
    if (e instanceof Ended) return e.code;
    throw e;
  }
  return 0;
}

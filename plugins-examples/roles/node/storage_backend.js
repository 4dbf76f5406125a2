// A storage backend: keeps each key in a file of its own. Enough for some thousand keys: a page reads all of them.
// Its entry has `config: { dir: /var/lib/store }` and `sandbox: { fs: { write: [/var/lib/store] } }`.
'use strict';

const { randomBytes } = require('node:crypto');
const fs = require('node:fs');
const path = require('node:path');

const { Plugin, ToolError, roles, seal, unseal } = require('./talon-plugin');

const plugin = new Plugin('hello-node', 'Keeps the state of plugins in files.');
let directory = null;

plugin.init(({ dir = null, ...others }) => {
  if (Object.keys(others).length > 0) throw new Error('this plugin takes the setting dir alone');
  directory = dir;
});

// A digest has the right length and the right characters for a name.
const fileOf = (key) => path.join(directory, seal(key).sha256);

function read(file) {
  const bytes = fs.readFileSync(file);
  const first = bytes.indexOf('\n');
  const second = bytes.indexOf('\n', first + 1);
  const key = unseal(JSON.parse(bytes.subarray(first + 1, second).toString()));
  return { key, revision: bytes.subarray(0, first).toString(), value: bytes.subarray(second + 1) };
}

const lookup = (key) => (directory !== null && fs.existsSync(fileOf(key)) ? read(fileOf(key)) : null);

// A name in a directory is durable once the directory is.
function sync(what) {
  const opened = fs.openSync(what, 'r');
  fs.fsyncSync(opened);
  fs.closeSync(opened);
}

// After a power cut the file is there as a whole, or not at all.
function write(key, revision, value) {
  const next = `${fileOf(key)}.next`;
  fs.writeFileSync(next, Buffer.concat([Buffer.from(`${revision}\n${JSON.stringify(seal(key))}\n`), value]));
  sync(next);
  fs.renameSync(next, fileOf(key));
  sync(directory);
}

function scan({ prefix, after, limit }) {
  const [begins, behind] = [prefix, after].map((part) => (part ? unseal(part) : Buffer.alloc(0)));
  const names = directory === null ? [] : fs.readdirSync(directory).filter((name) => !name.includes('.'));
  const rows = names
    .map((name) => read(path.join(directory, name)))
    .filter(({ key }) => key.subarray(0, begins.length).equals(begins) && Buffer.compare(key, behind) > 0)
    .sort((one, other) => Buffer.compare(one.key, other.key));
  const page = rows.slice(0, limit ?? 500);
  const items = page.map(({ key, revision, value }) => ({ key: seal(key), revision, bytes: value.length }));
  return { outcome: 'page', items, more: rows.length > page.length };
}

// It runs without a pause, so that of two writes at once one compares first.
function store({ op, key, value, expected = null, ...page }) {
  if (op === 'scan') return scan(page);
  if (!['get', 'set', 'delete'].includes(op)) {
    throw new ToolError('this storage backend knows get, set, delete and scan');
  }
  const name = unseal(key ?? {});
  const row = lookup(name);
  if (op === 'get') {
    return row ? { outcome: 'found', revision: row.revision, value: seal(row.value) } : { outcome: 'absent' };
  }
  if (directory === null) return { outcome: 'refused', reason: 'config: dir is not set' };
  if ((row?.revision ?? null) !== expected) return { outcome: 'conflict' };
  if (op === 'set') {
    // One that no key ever had.
    const revision = randomBytes(16).toString('hex');
    write(name, revision, unseal(value ?? {}));
    return { outcome: 'stored', revision };
  }
  fs.unlinkSync(fileOf(name));
  sync(directory);
  return { outcome: 'deleted' };
}

plugin.tool('store', 'Keeps the state of plugins.', roles.storage_backend, store, { roles: ['storage_backend'] });

module.exports = plugin;
if (require.main === module) plugin.serve();

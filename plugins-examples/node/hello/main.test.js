// The tool in this process, and the program over its socket: npm test.
'use strict';

const assert = require('node:assert');
const path = require('node:path');
const test = require('node:test');
const { Host, call } = require('./talon-plugin/testing');
const plugin = require('./main');

test('it greets', async () => {
  assert.equal((await call(plugin, 'greet', { name: 'Ada' })).content, 'Hello, Ada!');
});

test('it asks for a name', async () => {
  assert.equal((await call(plugin, 'greet', { name: ' ' })).error, 'greet whom? give a name');
});

test('the program answers and ends', async () => {
  const host = await Host.start(path.join(__dirname, 'main.js'));
  assert.equal((await host.call('greet', { name: 'Ada' })).content, 'Hello, Ada!');
  assert.equal((await host.call('greet')).error, "argument 'name' is missing");
  assert.equal(await host.shutdown(), 0);
});

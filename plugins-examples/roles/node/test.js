// The action in this process, and the program over its socket: npm test.
'use strict';

const assert = require('node:assert');
const path = require('node:path');
const test = require('node:test');
const { Host, call } = require('./talon-plugin/testing');
const plugin = require('./main');

const SAMPLE = {{sample}};
const ANSWER = {{answer}};

test('the action answers', async () => {
  assert.deepEqual(JSON.parse((await call(plugin, '{{action}}', SAMPLE)).structured_content), ANSWER);
});

test('the program answers and ends', async () => {
  const host = await Host.start(path.join(__dirname, 'main.js'));
  assert.deepEqual(JSON.parse((await host.call('{{action}}', SAMPLE)).structured_content), ANSWER);
  assert.equal(await host.shutdown(), 0);
});

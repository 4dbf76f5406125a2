// The stream of one host.
'use strict';

const assert = require('node:assert');
const { once } = require('node:events');
const { Writable } = require('node:stream');
const test = require('node:test');
const { Listener, MAX_NOTICES } = require('../talon-plugin/notices');

// A stream that writes nothing before it may, as that of a host that reads nothing.
function held() {
  const written = [];
  let may;
  const permitted = new Promise((resolve) => (may = resolve));
  const stream = new Writable({
    objectMode: true,
    write: (notice, _, done) => {
      written.push(notice.output);
      permitted.then(() => done());
    },
  });
  return { stream, written, may, listener: new Listener(stream) };
}

test('a count waits for no further line', async () => {
  const { stream, written, may, listener } = held();
  for (let i = 0; i < MAX_NOTICES + 3; i += 1) listener.output('a', ['x', 'x']);
  listener.output('b', ['x']);
  may();
  await once(stream, 'drain');
  listener.end();
  await once(stream, 'finish');
  assert.deepEqual(
    written.slice(MAX_NOTICES).map((output) => [output.call_id, output.lines, output.left_out_lines]),
    [['a', [], 6], ['b', [], 1]],
  );
});

test('a line after a gap has its count', async () => {
  const { stream, written, may, listener } = held();
  stream.removeAllListeners('drain');
  for (let i = 0; i < MAX_NOTICES + 1; i += 1) listener.output('a', ['x']);
  may();
  await once(stream, 'drain');
  listener.output('a', ['after']);
  assert.deepEqual(written.at(-1), { call_id: 'a', lines: ['after'], left_out_lines: 1 });
});

test('what is counted is bounded, and told at the end', async () => {
  const { stream, written, may, listener } = held();
  for (let i = 0; i < MAX_NOTICES; i += 1) listener.output('a', ['x']);
  for (let i = 0; i < 3 * MAX_NOTICES; i += 1) listener.output(String(i), ['x']);
  listener.tell({ progress: {} });
  listener.end();
  may();
  await once(stream, 'finish');
  assert.equal(written.reduce((sum, output) => sum + output.left_out_lines, 0), MAX_NOTICES);
});

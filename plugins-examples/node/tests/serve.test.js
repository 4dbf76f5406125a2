// A program as a host meets it.
'use strict';

const assert = require('node:assert');
const { once } = require('node:events');
const path = require('node:path');
const test = require('node:test');
const { spawnSync } = require('node:child_process');
const grpc = require('@grpc/grpc-js');
const { load } = require('../talon-plugin/proto');
const { Host } = require('../talon-plugin/testing');

const PROGRAM = path.join(__dirname, 'program.js');
const CHECK = '/grpc.health.v1.Health/Check';

async function served(options, run) {
  const host = await Host.start(PROGRAM, options);
  try {
    await run(host);
  } finally {
    await host.kill();
  }
}

test('answers, errors and settings', () =>
  served({ config: { word: 'hi' } }, async (host) => {
    assert.equal((await host.call('word')).content, 'hi');
    const said = await host.call('says', { text: 'a', times: 3 });
    assert.deepEqual([said.call_id, said.content, said.structured_content], ['call', 'aaa', '{"times":3}']);
    assert.equal((await host.call('says', { text: '' })).error, 'say what?');
    assert.match((await host.call('nothing')).error, /there are word, slow/);
    assert.equal((await host.call('fails')).error, "fails failed; the plugin's log says why");
    assert.match((await host.call('says', { text: 'x'.repeat(1000), times: 9000 })).error, /8323072 may be; ask for less/);
  }));

test('health is for plugin, and what is not served is unimplemented', () =>
  served({}, async (host) => {
    assert.deepEqual(await host.raw(CHECK, Buffer.from('\n\x06plugin')), Buffer.from([8, 1]));
    await assert.rejects(host.raw(CHECK, Buffer.from('\n\x05other')), { code: grpc.status.NOT_FOUND });
    const refresh = host.raw('/opentalon.plugin.v1.PluginService/RefreshCapabilities');
    await assert.rejects(refresh, { code: grpc.status.UNIMPLEMENTED });
  }));

test("settings are refused with the plugin's text", () =>
  assert.rejects(Host.start(PROGRAM, { config: { wrod: 'hi' } }), { details: 'there is one setting: word' }));

test('a call in flight is answered at the end', () =>
  served({}, async (host) => {
    const slow = host.call('slow', { ms: 300 });
    // Answered, so the other is under way: calls of one connection are taken in order.
    await host.call('word');
    assert.equal(await host.shutdown(), 0);
    assert.equal((await slow).content, 'done');
  }));

test('a call past its deadline is over', () =>
  served({}, (host) => assert.rejects(host.call('hangs', {}, 200), { code: grpc.status.DEADLINE_EXCEEDED })));

test('progress reaches who listens', () =>
  served({}, async (host) => {
    const { Notices } = load('talon/plugin/v1/notices.proto').talon.plugin.v1;
    const listener = new Notices(`unix:${path.join(host.directory, `plugin-${host.process.pid}.sock`)}`, grpc.credentials.createInsecure());
    const stream = listener.Listen({});
    const told = [];
    stream.on('data', ({ progress }) => told.push([progress.call_id, progress.progress, progress.total]));
    const ended = new Promise((resolve) => stream.on('end', resolve).on('error', resolve));
    // Until a notice arrives: there is no notification that the stream is open.
    while (told.length === 0) await host.call('steps', { count: 2 });
    assert.equal(await host.shutdown(), 0);
    await ended;
    assert.deepEqual(told.slice(0, 2), [['call', 1, 2], ['call', 2, 2]]);
    listener.close();
  }));

test('output reaches who listens', () =>
  served({}, async (host) => {
    const { Notices } = load('talon/plugin/v1/notices.proto').talon.plugin.v1;
    const listener = new Notices(`unix:${path.join(host.directory, `plugin-${host.process.pid}.sock`)}`, grpc.credentials.createInsecure());
    const stream = listener.Listen({});
    const told = [];
    stream.on('data', ({ output }) => told.push(output));
    const ended = new Promise((resolve) => stream.on('end', resolve).on('error', resolve));
    const text = `one\r\ntwo\n${'ä'.repeat(4096)}\nlast\n`;
    while (told.length === 0) await host.call('prints', { text });
    assert.equal(told[0].call_id, 'call');
    assert.deepEqual(told[0].lines, ['one', 'two', 'ä'.repeat(2048), 'last']);
    // Lines that are more than wait for a host are counted, also when nothing else happens.
    await host.call('prints', { text: 'x\n'.repeat(100_000) });
    const flooded = (lines) => lines.filter((line) => line === 'x').length;
    const counted = () => told.reduce((sum, { lines, left_out_lines: more }) => sum + flooded(lines) + Number(more), 0);
    while (counted() < 100_000) await once(stream, 'data');
    assert.equal(counted(), 100_000);
    assert.equal(await host.shutdown(), 0);
    await ended;
    listener.close();
  }));

test('an event is told until it is acknowledged', () =>
  served({}, async (host) => {
    const first = host.events();
    first.on('error', () => {});
    const next = (stream) => new Promise((resolve) => stream.once('data', resolve));
    const answers = [host.call('tell', { id: 'a' }), host.call('tell', { id: 'b' })];
    const told = await next(first);
    assert.deepEqual([told.id, told.topic, told.summary, told.severity, told.fields.from], ['a', 'told', 'event a', 'warning', 'ada']);
    const second = host.events();
    second.on('error', () => {});
    assert.equal((await next(second)).id, 'a');
    await host.acknowledge(['a', 'of nothing']);
    await host.acknowledge([], [{ id: 'b', reason: 'bad' }]);
    assert.deepEqual((await Promise.all(answers)).map((answer) => answer.content), ['1 wait', 'refused: bad']);
    assert.equal(await host.shutdown(), 0);
  }));

test('by hand it says what to do', () => {
  const { status, stdout, stderr } = spawnSync(process.execPath, [PROGRAM], { env: {}, encoding: 'utf8' });
  assert.deepEqual([status, stdout], [1, '']);
  assert.match(stderr, /talon exec .*\nIts actions: word, slow/);
});

test('a path too long for a socket is said', () => {
  const env = { TALON_PLUGIN_MAGIC_COOKIE: 'd3a7c1f0-talon-plugin', PLUGIN_UNIX_SOCKET_DIR: `/tmp/${'d'.repeat(120)}` };
  const { status, stdout, stderr } = spawnSync(process.execPath, [PROGRAM], { env, encoding: 'utf8' });
  assert.deepEqual([status, stdout], [1, '']);
  assert.match(stderr, /at most 107/);
});

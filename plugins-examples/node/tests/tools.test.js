// What declarations become, what texts become by them, and the state.
'use strict';

const assert = require('node:assert');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const test = require('node:test');
const grpc = require('@grpc/grpc-js');
const { Plugin, ...errors } = require('../talon-plugin');
const { load } = require('../talon-plugin/proto');
const { hostState } = require('../talon-plugin/state');
const { call, memoryState } = require('../talon-plugin/testing');

const plugin = new Plugin('tests', 'Of the tests.');
plugin.tool(
  'everything',
  'Takes everything.',
  {
    text: { type: 'string', description: 'A text.' },
    count: { type: 'integer', minimum: 1, maximum: 9 },
    ratio: { type: 'number', default: 0.5 },
    loud: { type: 'boolean', optional: true },
    tags: { type: 'array', default: [] },
    marks: { type: 'object', optional: true },
    mode: { type: 'string', enum: ['fast', 'slow'], default: 'fast' },
  },
  (args) => args,
  { destructive: true, userOnly: true },
);
plugin.tool('who', 'Looks at its call.', {}, (_, context) => `${context.injected.session_id} ${context.remaining() > 0}`, {
  inject: ['session_id'],
});
plugin.tool('keeps', 'Uses the state.', {}, (_, context) => context.state.get('a'));

test('declarations become parameters', () => {
  const [action, who] = plugin.capabilities().actions;
  const seen = Object.fromEntries(action.parameters.map((p) => [p.name, [p.type, p.required, p.schema]]));
  assert.deepEqual(seen.text, ['string', true, '']);
  assert.deepEqual(seen.count, ['integer', true, '{"type":"integer","minimum":1,"maximum":9}']);
  assert.deepEqual(seen.ratio, ['number', false, '']);
  assert.deepEqual(seen.loud, ['boolean', false, '']);
  assert.deepEqual(seen.mode, ['string', false, '{"type":"string","enum":["fast","slow"]}']);
  assert.ok(action.destructive && action.user_only && !action.read_only && !('destructive' in who));
});

test('a job is proposed', () => {
  const one = new Plugin('one', '');
  const job = { cron: '@daily', timezone: 'Europe/Berlin', arguments: { days: 30 } };
  one.tool('tidy', 'Tidies.', {}, () => 'tidied', { proposedJobs: [job, { name: 'often', every: '6h' }] });
  const [action] = one.capabilities().actions;
  assert.deepEqual(action.roles, ['scheduled_task']);
  assert.deepEqual(action.proposed_jobs, [
    { name: '', cron: '@daily', every: '', timezone: 'Europe/Berlin', arguments_json: '{"days":30}' },
    { name: 'often', cron: '', every: '6h', timezone: '', arguments_json: '' },
  ]);
});

test('roles are declared', () => {
  const hooks = new Plugin('hooks');
  hooks.tool('look', 'Looks.', { message: { type: 'string' } }, () => ({ verdict: 'pass' }), { roles: ['request_hook'] });
  hooks.tool('none', 'None.', {}, () => 'x');
  assert.deepEqual(hooks.capabilities().actions.map((action) => action.roles), [['request_hook'], []]);
});

test('each role has its parameters', () => {
  const { roles } = require('../talon-plugin');
  const one = new Plugin('one');
  for (const [role, parameters] of Object.entries(roles)) one.tool(role, role, parameters, () => ({}), { roles: [role] });
  const required = Object.fromEntries(
    one.capabilities().actions.map(({ name, parameters }) => [name, parameters.filter((p) => p.required).map((p) => p.name)]),
  );
  assert.deepEqual(required.notification_sink, ['event', 'attempt']);
  assert.deepEqual(required.scheduled_task, ['run']);
  assert.deepEqual(required.auth_provider, ['scheme', 'credential', 'peer']);
  assert.deepEqual(required.api_route, ['method', 'path', 'query', 'headers', 'body', 'subject']);
  assert.deepEqual(required.storage_backend, ['op']);
  assert.deepEqual(required.channel, ['op']);
  assert.equal(Object.keys(required).length, 9);
});

test('bytes are sealed, and only whole ones are opened', () => {
  const { seal, unseal } = require('../talon-plugin');
  const bytes = Buffer.from([0, 255, 254, 10]);
  assert.deepEqual(seal(bytes).data, 'AP_-Cg');
  assert.deepEqual(unseal(seal(bytes)), bytes);
  assert.throws(() => unseal({ ...seal(bytes), data: 'AA' }), /digest/);
  assert.throws(() => unseal({ ...seal(bytes), data: 'AP_-Cg==' }), /base64url/);
});

test('what cannot be declared is refused where it is written', () => {
  for (const args of [
    ['no name', '', {}, () => {}],
    ['who', '', {}, () => {}],
    ['odd', '', { a: { type: 'date' } }, () => {}],
    ['odd', '', { a: { type: 'constructor' } }, () => {}],
    ['odd', '', () => {}],
  ]) {
    assert.throws(() => plugin.tool(...args), TypeError);
  }
});

test('seven is no text where the host sends types', async () => {
  const mixed = new Plugin('mixed', '');
  const parameters = { either: { type: 'any', optional: true }, count: { type: 'integer', default: 5 } };
  mixed.tool('mixed', '', parameters, (args) => ({ ...args, kind: typeof args.either }), { inject: ['session_id'] });
  const { parameters: declared } = mixed.capabilities().actions[0];
  assert.deepEqual([declared[0].type, declared[0].schema], ['any', '']);
  const read = async (texts, json) => {
    const answer = await mixed.call('mixed', texts, { callId: 'c', injected: {} }, json);
    return answer.error ? answer.error : JSON.parse(answer.content);
  };
  for (const either of [7, '7', 'true', true, 'null', null, '1.10', [7, '7'], { a: null }]) {
    const got = await read({ either: String(either) }, JSON.stringify({ either, session_id: 'mine' }));
    assert.deepEqual(got, { either, count: 5, kind: typeof either });
  }
  assert.equal((await read({}, '{"count":"7"}')).count, 7);
  assert.equal((await read({}, '{"count":null}')).count, 5);
  assert.deepEqual((await read({ either: '7' }, '')).either, 7);
  assert.deepEqual((await read({ either: 'seven' }, '')).either, 'seven');
  for (const [json, says] of [
    ['{"count":1.5}', "argument 'count': expected an integer, got"],
    ['{"other":1}', 'unknown argument "other"'],
    ['[]', 'the arguments are no JSON object'],
    ['{', 'the arguments are no JSON'],
    ['['.repeat(100_000), 'the arguments are no JSON'],
  ]) {
    const said = await read({}, json);
    assert.ok(String(said).startsWith(says) && said.length < 300, said);
  }
});

test('texts become values', async () => {
  const made = JSON.parse((await call(plugin, 'everything', { text: '5', count: 2, tags: ['a'], marks: { a: 1 } })).content);
  assert.deepEqual(made, { text: '5', count: 2, ratio: 0.5, tags: ['a'], marks: { a: 1 }, mode: 'fast' });
});

test('what does not fit is told', async () => {
  const good = { text: 'a', count: 1 };
  for (const [args, says] of [
    [{ count: 1 }, "argument 'text' is missing"],
    [{ ...good, shout: 'x' }, 'unknown argument "shout"; everything takes count, loud'],
    [{ ...good, constructor: 'x' }, 'unknown argument "constructor"'],
    [{ ...good, ['__proto__']: 'x' }, 'unknown argument "__proto__"'],
    [{ ...good, count: 'many' }, "argument 'count': expected an integer from 1 to 9, got \"many\""],
    [{ ...good, count: 10 }, "argument 'count': expected an integer from 1 to 9"],
    [{ ...good, ratio: '1e999' }, "argument 'ratio': expected a number"],
    [{ ...good, loud: 'yes' }, "argument 'loud': expected true or false"],
    [{ ...good, tags: '{}' }, "argument 'tags': expected an array"],
    [{ ...good, tags: '['.repeat(100_000) }, "argument 'tags': expected an array"],
    [{ ...good, marks: '[]' }, "argument 'marks': expected an object"],
    [{ ...good, mode: 'odd' }, "argument 'mode': expected one of fast, slow, got \"odd\""],
  ]) {
    const { error } = await call(plugin, 'everything', args);
    assert.ok(error.startsWith(says) && error.length < 300, error);
  }
});

test('a call knows of itself', async () => {
  assert.equal((await call(plugin, 'who', { session_id: 's1' })).content, 's1 true');
  assert.match((await call(plugin, 'keeps')).error, /TALON_STATE_SOCKET is not set/);
  await assert.rejects(plugin.configure({ loud: true }), /remove loud/);
});

async function keeps(state) {
  assert.equal(await state.get('a'), undefined);
  await state.set('a', Buffer.from([0, 255]));
  assert.deepEqual(await state.get('a'), Buffer.from([0, 255]));
  assert.equal((await state.compareAndSet('a', undefined, 'new')).swapped, false);
  assert.equal((await state.compareAndSet('a', Buffer.from([0, 255]), '')).swapped, true);
  assert.deepEqual(await state.get('a'), Buffer.alloc(0));
  assert.equal((await state.compareAndSet('a', '', undefined)).swapped, true);
  assert.equal(await state.delete('a'), false);
  for (const name of 'edcba') await state.set(`p/${name}`, '');
  assert.deepEqual(await state.keys('p/'), ['p/a', 'p/b', 'p/c', 'p/d', 'p/e']);
  assert.equal(await state.delete('p/a'), true);
  for (const n of [1, 2]) assert.deepEqual(await state.updateJson('n', ({ n }) => ({ n: n + 1 }), { n: 0 }), { n });
  assert.deepEqual(await state.getJson('n'), { n: 2 });
  await state.set('n', '{');
  await assert.rejects(state.getJson('n'), errors.StateError);
}

test('state in memory keeps, with limits', async () => {
  await keeps(memoryState());
  const state = memoryState(1);
  await state.set('a', '');
  await assert.rejects(state.set('b', ''), errors.QuotaExceeded);
  for (const key of ['', 'k'.repeat(513)]) await assert.rejects(state.get(key), errors.Invalid);
});

test('state over a socket keeps, and failures have types', async () => {
  const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'talon-'));
  const socket = path.join(directory, 'k');
  const kept = new Map();
  const length = (number, value) => Buffer.concat([Buffer.from([(number << 3) | 2, value.length]), value]);
  const any = Buffer.concat([
    length(1, Buffer.from('type.googleapis.com/talon.state.v1.QuotaExceeded')),
    length(2, Buffer.concat([length(1, Buffer.from('bytes')), Buffer.from([16, 90, 24, 100, 32, 120])])),
  ]);
  const full = new grpc.Metadata();
  full.set('grpc-status-details-bin', Buffer.concat([Buffer.from([8, 8]), length(3, any)]));
  const same = (a, b) => (a === undefined || b === undefined ? a === b : a.equals(b));
  const server = new grpc.Server();
  const { State } = load('talon/state/v1/state.proto').talon.state.v1;
  server.addService(State.service, {
    Get: ({ request: { key } }, reply) =>
      key.startsWith('code/') ? reply({ code: Number(key.slice(5)), details: 'told' }) : reply(null, { value: kept.get(key) }),
    Set: ({ request: { key, value } }, reply) => {
      if (key === 'full') return reply({ code: 8, details: 'full', metadata: full });
      kept.set(key, value);
      reply(null, {});
    },
    Delete: ({ request: { key } }, reply) => reply(null, { existed: kept.delete(key) }),
    Keys: ({ request: { prefix, page_token: after } }, reply) => {
      const found = [...kept.keys()].filter((key) => key.startsWith(prefix) && key > after).sort();
      reply(null, { keys: found.slice(0, 2), next_page_token: found.length > 2 ? found[1] : '' });
    },
    CompareAndSet: ({ request: { key, expected, value } }, reply) => {
      const current = kept.get(key);
      if (!same(current, expected)) return reply(null, { swapped: false, current });
      if (value === undefined) kept.delete(key);
      else kept.set(key, value);
      reply(null, { swapped: true });
    },
  });
  await new Promise((resolve) => server.bindAsync(`unix:${socket}`, grpc.ServerCredentials.createInsecure(), resolve));
  try {
    const state = hostState(socket);
    await keeps(state);
    await assert.rejects(state.set('full', 'x'), { resource: 'bytes', used: 90, limit: 100, wanted: 120 });
    for (const [code, kind] of [
      [14, errors.Unavailable],
      [4, errors.Unavailable],
      [8, errors.Unavailable],
      [3, errors.Invalid],
      [13, errors.StateError],
    ]) {
      await assert.rejects(state.get(`code/${code}`), kind);
    }
  } finally {
    server.forceShutdown();
    fs.rmSync(directory, { recursive: true });
  }
});

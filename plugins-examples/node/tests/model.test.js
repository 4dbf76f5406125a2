// Models that are asked through a call.
'use strict';

const assert = require('node:assert');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const test = require('node:test');
const grpc = require('@grpc/grpc-js');
const { Plugin, ModelError } = require('../talon-plugin');
const { load } = require('../talon-plugin/proto');
const { hostModel } = require('../talon-plugin/model');
const { call, cannedModel } = require('../talon-plugin/testing');

const plugin = new Plugin('brief', 'Summarizes.');
plugin.tool('summarize', 'Summarizes a text.', { text: { type: 'string', description: 'The text.' } }, async ({ text }, context) =>
  (await context.model.complete(text, { system: 'One sentence.' })).text,
);

test('a tool asks the granted model', async () => {
  const model = cannedModel('It rained.');
  const answer = await call(plugin, 'summarize', { text: '...' }, { model });
  assert.equal(answer.content, 'It rained.');
  assert.equal(model.requests[0].system, 'One sentence.');
  assert.equal(model.requests[0].call_id, 'call');
  const refused = (error) => error instanceof ModelError && error.reason === 'unknown_model';
  await assert.rejects(model.complete('x', { model: 'other' }), refused);
  const without = await call(plugin, 'summarize', { text: '...' });
  assert.match(without.error, /granted no model/);
});

test('a request and an answer travel', async (context) => {
  const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'm-'));
  const { Model } = load('talon/model/v1/model.proto').talon.model.v1;
  const server = new grpc.Server();
  server.addService(Model.service, {
    List: (_, reply) => reply(null, { models: [{ alias: 'auto' }] }),
    Complete: ({ request }, reply) =>
      reply(null, { text: `<${request.messages[0].text}>`, model: 'p/m', finish: 'stop', usage: { input_tokens: 3, output_tokens: 1 } }),
  });
  context.after(() => server.forceShutdown());
  const socket = `unix:${path.join(directory, 's')}`;
  await new Promise((resolve, reject) =>
    server.bindAsync(socket, grpc.ServerCredentials.createInsecure(), (error) => (error ? reject(error) : resolve())),
  );
  const model = hostModel(path.join(directory, 's'));
  assert.deepEqual(await model.granted(), ['auto']);
  const answer = await model.complete('hi', { temperature: 0.5 });
  assert.deepEqual([answer.text, answer.model, answer.inputTokens], ['<hi>', 'p/m', 3]);
});

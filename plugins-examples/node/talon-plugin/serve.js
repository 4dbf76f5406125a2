// What a program owes its host: the cookie, a socket, one line on stdout, the services, an orderly end.
'use strict';

const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const grpc = require('@grpc/grpc-js');
const { load } = require('./proto');
const { Context } = require('./context');
const { hostModel } = require('./model');
const { Listener } = require('./notices');
const { hostState } = require('./state');

const COOKIE = { key: 'TALON_PLUGIN_MAGIC_COOKIE', value: 'd3a7c1f0-talon-plugin' };
// The largest request that is read. The host itself lets 1 MiB of arguments through.
const MAX_REQUEST_BYTES = 32 << 20;
// What the host reads at most where it does not say (OPENTALON_GRPC_MAX_MSG_BYTES), and what of it is left for the rest of
// an answer. A larger answer becomes an error, which a host would otherwise make of it less clearly.
const DEFAULT_ANSWER_BYTES = 8 << 20;
const ANSWER_MARGIN_BYTES = 64 << 10;
// Milliseconds that calls in flight may take at the end. The host's own grace period is 10 s unless configured.
const GRACE = 8000;
// Milliseconds from the last answer to the end of its connection. grpc-js does not tell when an answer is written, and loses
// one that it is still about to write.
const FLUSH = 50;
// The longest path of a unix socket, by the kernel.
const MAX_SOCKET_PATH = 107;
// How much of a line of output is sent, which is what hosts keep, and the lines of one notice, which has 16 KiB at most.
const MAX_LINE_BYTES = 4096;
const MAX_OUTPUT_BYTES = 8 << 10;
const MAX_OUTPUT_LINES = 256;

function serve(plugin) {
  if (process.env[COOKIE.key] !== COOKIE.value) {
    const main = process.argv[1];
    const directory = path.dirname(main);
    const how = fs.existsSync(path.join(directory, 'plugin.yaml')) ? directory : main;
    fail(
      'this is a Talon plugin, not a program to run by hand.\n' +
        `Call one of its actions with:  talon exec ${how} ACTION [key=value …]\n` +
        `Its actions: ${plugin.actions.join(', ') || 'none'}`,
    );
  }
  const directory = process.env.PLUGIN_UNIX_SOCKET_DIR || fs.mkdtempSync(path.join(os.tmpdir(), 'talon-'));
  const address = path.join(directory, `plugin-${process.pid}.sock`);
  if (Buffer.byteLength(address) > MAX_SOCKET_PATH) {
    fail(`${address} is too long for a unix socket, which may have at most ${MAX_SOCKET_PATH} bytes`);
  }
  const calls = new Calls();
  const server = new grpc.Server({
    'grpc.max_receive_message_length': MAX_REQUEST_BYTES,
    'grpc.max_send_message_length': -1,
    interceptors: [(method, call) => (method.responseStream ? call : calls.counted(call))],
  });
  const listeners = new Set();
  const stop = () => {
    setTimeout(() => process.exit(0), GRACE).unref();
    // The connection is left alone until every call has its answer: clients drop what they wait for with it.
    calls.whenNone(() => {
      for (const listener of listeners) listener.end();
      plugin.eventSource?._stop();
      server.tryShutdown(() => process.exit(0));
    });
  };
  process.once('SIGTERM', stop).once('SIGINT', stop);
  add(server, plugin, listeners, stop);
  server.bindAsync(`unix:${address}`, grpc.ServerCredentials.createInsecure(), (error) => {
    if (error) fail(`cannot listen on ${address}: ${error.message}`);
    process.stdout.write(`1|1|unix|${address}|grpc\n`);
  });
}

// The calls that have no answer yet.
class Calls {
  #open = new Set();
  #waiting = [];

  counted(call) {
    const ticket = {};
    this.#open.add(ticket);
    const over = () => {
      if (this.#open.delete(ticket) && this.#open.size === 0) for (const run of this.#waiting.splice(0)) setTimeout(run, FLUSH);
    };
    const listener = new grpc.ServerListenerBuilder().withOnCancel(over).build();
    const responder = new grpc.ResponderBuilder()
      .withStart((next) => next(listener))
      .withSendStatus((status, next) => {
        next(status);
        over();
      })
      .build();
    return new grpc.ServerInterceptingCall(call, responder);
  }

  whenNone(run) {
    if (this.#open.size === 0) run();
    else this.#waiting.push(run);
  }
}

function fail(text) {
  // Written at once: what waits in a stream would be lost by the exit.
  fs.writeSync(2, `${text}\n`);
  process.exit(1);
}

function add(server, plugin, listeners, stop) {
  const { PluginService } = load('opentalon/plugin/v1/plugin.proto').opentalon.plugin.v1;
  const { Notices, EventSource } = load('talon/plugin/v1/notices.proto').talon.plugin.v1;
  const state = process.env.TALON_STATE_SOCKET && hostState(process.env.TALON_STATE_SOCKET);
  const model = process.env.TALON_MODEL_SOCKET && hostModel(process.env.TALON_MODEL_SOCKET);
  const largest = Number(process.env.OPENTALON_GRPC_MAX_MSG_BYTES) || DEFAULT_ANSWER_BYTES;
  const maxAnswerBytes = largest - ANSWER_MARGIN_BYTES;
  const told = {
    progress: (progress) => {
      for (const listener of listeners) listener.tell({ progress });
    },
    output: (callId, text) => {
      for (const lines of batches(text)) for (const listener of listeners) listener.output(callId, lines);
    },
  };

  server.addService(PluginService.service, {
    Init: ({ request }, reply) => {
      Promise.resolve()
        .then(() => plugin.configure(settings(request.config_json)))
        .then(
          () => reply(null, {}),
          (error) => reply({ code: grpc.status.INVALID_ARGUMENT, details: error.message }),
        );
    },
    Capabilities: (_, reply) => reply(null, plugin.capabilities()),
    Execute: (call, reply) => {
      execute(plugin, call, { state, model, ...told }, maxAnswerBytes).then((answer) => reply(null, answer), reply);
    },
  });
  server.addService(Notices.service, {
    Listen: (stream) => {
      const listener = new Listener(stream);
      listeners.add(listener);
      stream.on('cancelled', () => {
        listeners.delete(listener);
        stream.end();
      });
    },
  });
  if (plugin.eventSource) {
    server.addService(EventSource.service, {
      Subscribe: (stream) => plugin.eventSource._subscribe(stream),
      Acknowledge: ({ request }, reply) => {
        plugin.eventSource._acknowledge(request);
        reply(null, {});
      },
    });
  }
  // Two services whose messages are so small that they are written here by hand.
  const unary = (path, answer) => ({
    path,
    requestStream: false,
    responseStream: false,
    requestDeserialize: (bytes) => bytes,
    responseSerialize: () => answer,
  });
  server.addService(
    { Check: unary('/grpc.health.v1.Health/Check', Buffer.from([8, 1])) }, // status = SERVING
    {
      // Of a HealthCheckRequest the service's name is field 1: "plugin", or none for the whole server.
      Check: ({ request }, reply) =>
        ['', '\n\x06plugin'].includes(request.toString('latin1'))
          ? reply(null, {})
          : reply({ code: grpc.status.NOT_FOUND, details: 'there is one service: plugin' }),
    },
  );
  server.addService(
    { Shutdown: unary('/plugin.GRPCController/Shutdown', Buffer.alloc(0)) },
    {
      Shutdown: (_, reply) => {
        reply(null, {});
        stop();
      },
    },
  );
}

function settings(text) {
  const config = JSON.parse(text || '{}');
  if (typeof config !== 'object' || config === null || Array.isArray(config)) {
    throw new Error('the config is not a JSON object');
  }
  return config;
}

// The lines of a text, in lists that fit into one notice each.
function* batches(text) {
  let [batch, size] = [[], 0];
  for (const whole of text.replace(/\n$/, '').split('\n')) {
    const line = cut(whole.replace(/\r$/, ''));
    const bytes = Buffer.byteLength(line);
    if ((batch.length > 0 && size + bytes > MAX_OUTPUT_BYTES) || batch.length === MAX_OUTPUT_LINES) {
      yield batch;
      [batch, size] = [[], 0];
    }
    batch.push(line);
    size += bytes;
  }
  yield batch;
}

// In whole characters.
function cut(line) {
  const bytes = Buffer.from(line);
  if (bytes.length <= MAX_LINE_BYTES) return line;
  let end = MAX_LINE_BYTES;
  while ((bytes[end] & 0xc0) === 0x80) end -= 1;
  return bytes.toString('utf8', 0, end);
}

async function execute(plugin, call, served, maxAnswerBytes) {
  const { id, action, args, arguments_json: argumentsJson, credential_headers: credentials } = call.request;
  const given = new AbortController();
  call.on('cancelled', () => given.abort());
  const context = new Context({
    callId: id,
    config: plugin.config,
    deadline: call.getDeadline(),
    credentials,
    signal: given.signal,
    ...served,
  });
  const answer = await plugin.call(action, args, context, argumentsJson);
  given.abort();
  const size = ['content', 'error', 'structured_content'].reduce((sum, part) => sum + Buffer.byteLength(answer[part] ?? ''), 0);
  if (size <= maxAnswerBytes) return answer;
  return { call_id: id, error: `the answer has ${size} bytes, ${maxAnswerBytes} may be; ask for less` };
}

module.exports = { serve, COOKIE };

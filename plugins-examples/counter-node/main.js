// Counters kept by the host: a Talon plugin's state without an SDK, in plain Node and @grpc/grpc-js.
//
// The state is in state.js. This file is what every plugin owes its host: the magic cookie, one handshake line, the
// PluginService, a health service and Shutdown.
'use strict';

const os = require('node:os');
const path = require('node:path');
const grpc = require('@grpc/grpc-js');
const { load } = require('./proto');
const { Counters, Refusal } = require('./state');

const { PluginService } = load('opentalon/plugin/v1/plugin.proto').opentalon.plugin.v1;

const name = { name: 'name', description: 'Which counter', type: 'string', required: true };
const capabilities = {
  name: 'counter-node',
  description: 'Counts, and goes on counting after a restart',
  actions: [
    { name: 'increment', description: 'Adds one and gives the count', parameters: [name] },
    { name: 'reset', description: 'Begins again at zero', parameters: [name] },
  ],
};

async function execute(counters, { id, action, args }) {
  try {
    switch (action) {
      case 'increment':
        return { call_id: id, content: String(await counters.increment(args.name)) };
      case 'reset':
        await counters.reset(args.name);
        return { call_id: id, content: '0' };
      default:
        return { call_id: id, error: `no action ${action}` };
    }
  } catch (error) {
    // A tool that says no answers with OK; a gRPC error would be a fault of the plugin.
    if (error instanceof Refusal) return { call_id: id, error: error.message };
    throw error;
  }
}

function main() {
  const env = process.env;
  if (env.TALON_PLUGIN_MAGIC_COOKIE !== 'd3a7c1f0-talon-plugin') {
    console.error('This is a Talon plugin; a host starts it. Try: talon serve, with its directory in the plugin directory');
    process.exit(1);
  }
  const counters = new Counters(env.TALON_STATE_SOCKET);
  const server = new grpc.Server();
  const stop = () => server.tryShutdown(() => process.exit(0));
  process.once('SIGTERM', stop).once('SIGINT', stop);

  server.addService(PluginService.service, {
    Init: ({ request }, reply) => {
      if (['', '{}'].includes(request.config_json)) return reply(null, {});
      reply({ code: grpc.status.INVALID_ARGUMENT, details: 'this plugin takes no config' });
    },
    Capabilities: (_, reply) => reply(null, capabilities),
    Execute: ({ request }, reply) => {
      execute(counters, request).then((result) => reply(null, result), (error) => reply(error));
    },
  });
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
    { Check: (_, reply) => reply(null, {}) },
  );
  server.addService(
    { Shutdown: unary('/plugin.GRPCController/Shutdown', Buffer.alloc(0)) },
    { Shutdown: (_, reply) => { reply(null, {}); stop(); } },
  );

  const address = path.join(env.PLUGIN_UNIX_SOCKET_DIR || os.tmpdir(), 'counter.sock');
  server.bindAsync(`unix:${address}`, grpc.ServerCredentials.createInsecure(), (error) => {
    if (error) throw error;
    console.log(`1|1|unix|${address}|grpc`);
  });
}

main();

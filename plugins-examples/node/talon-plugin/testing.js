// Tests without a supervisor: tools called as a host calls them, and the program itself over its socket.
'use strict';

const assert = require('node:assert');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const readline = require('node:readline');
const { once } = require('node:events');
const { spawn } = require('node:child_process');
const grpc = require('@grpc/grpc-js');
const { load } = require('./proto');
const { Context } = require('./context');
const { Model } = require('./model');
const { State } = require('./state');
const { Invalid, ModelError, QuotaExceeded } = require('./errors');
const { COOKIE } = require('./serve');

// A bound on hanging, in milliseconds; not an expectation of speed.
const PATIENCE = 60_000;

// Arguments as texts, as they travel beside their JSON: texts as they are, everything else as JSON, null left out.
function texts(args) {
  const given = Object.entries(args).filter(([, value]) => value !== null && value !== undefined);
  return Object.fromEntries(
    given.map(([name, value]) => [name, typeof value === 'string' ? value : JSON.stringify(value)]),
  );
}

// Calls a tool in this process, its arguments read as on the wire, with their types. `context` has Context's fields, such as `state`.
exports.call = (plugin, action, args = {}, context = {}) =>
  plugin.call(action, texts(args), new Context({ config: plugin.config, ...context }), JSON.stringify(args));

// Models that give canned answers under these aliases; `requests` holds what was asked.
exports.cannedModel = (text, aliases = ['default']) => {
  const requests = [];
  const model = new Model(async (method, request) => {
    if (method === 'List') return { models: aliases.map((alias) => ({ alias })) };
    const alias = request.model || aliases[0];
    if (!aliases.includes(alias)) {
      throw new ModelError('unknown_model', `${alias} is not granted to this plugin; granted: ${aliases.join(', ')}`);
    }
    requests.push(request);
    return { text, model: `canned/${alias}`, finish: 'stop' };
  });
  return Object.assign(model, { requests });
};

// State in memory, with the host's limits.
exports.memoryState = (maxKeys = 100_000) => {
  const kept = new Map();
  const put = (key, value) => {
    if (value.length > 1 << 20) throw new Invalid('a value has at most 1 MiB');
    if (!kept.has(key) && kept.size >= maxKeys) {
      throw new QuotaExceeded({ resource: 'keys', used: kept.size, limit: maxKeys, wanted: kept.size + 1 });
    }
    kept.set(key, value);
  };
  const same = (a, b) => (a === undefined || b === undefined ? a === b : a.equals(b));
  const methods = {
    Get: ({ key }) => ({ value: kept.get(key) }),
    Set: ({ key, value }) => put(key, value),
    Delete: ({ key }) => ({ existed: kept.delete(key) }),
    Keys: ({ prefix }) => ({ keys: [...kept.keys()].filter((key) => key.startsWith(prefix)).sort(), next_page_token: '' }),
    CompareAndSet: ({ key, expected, value }) => {
      const current = kept.get(key);
      if (!same(current, expected)) return { swapped: false, current };
      if (value === undefined) kept.delete(key);
      else put(key, value);
      return { swapped: true };
    },
  };
  return new State(async (method, request) => {
    const size = Buffer.byteLength(request.key ?? 'prefix');
    if (size < 1 || size > 512) throw new Invalid('a key has 1 to 512 bytes');
    return methods[method](request);
  });
};

// Starts a program as a host does, without a jail.
exports.Host = class Host {
  static async start(program, { config = {}, env = {} } = {}) {
    const host = new Host();
    host.directory = fs.mkdtempSync(path.join(os.tmpdir(), 'talon-'));
    host.process = spawn(process.execPath, [program], {
      env: { PATH: process.env.PATH, PLUGIN_UNIX_SOCKET_DIR: host.directory, [COOKIE.key]: COOKIE.value, ...env },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    host.ended = once(host.process, 'exit').then(([code]) => code);
    const lines = readline.createInterface({ input: host.process.stdout });
    const line = await Promise.race([once(lines, 'line').then(([first]) => first), host.ended]);
    const fields = String(line).split('|');
    if (fields.length < 5) throw new Error(`${program} made no handshake: ${line}`);
    const address = `unix:${fields[3]}`;
    const { PluginService } = load('opentalon/plugin/v1/plugin.proto').opentalon.plugin.v1;
    host.client = new PluginService(address, grpc.credentials.createInsecure());
    const { EventSource } = load('talon/plugin/v1/notices.proto').talon.plugin.v1;
    host.source = new EventSource(address, grpc.credentials.createInsecure());
    host.controller = new grpc.Client(address, grpc.credentials.createInsecure());
    try {
      await host.ask('Init', { config_json: JSON.stringify(config) });
      host.capabilities = await host.ask('Capabilities', {});
    } catch (error) {
      await host.kill();
      throw error;
    }
    return host;
  }

  ask(method, request, timeout = PATIENCE) {
    return new Promise((resolve, reject) => {
      this.client[method](request, { deadline: Date.now() + timeout }, (error, answer) =>
        error ? reject(error) : resolve(answer),
      );
    });
  }

  // Calls a tool; the answer has `content`, `error` and `structured_content`.
  call(action, args = {}, timeout = PATIENCE) {
    return this.ask('Execute', { id: 'call', plugin: 'test', action, args: texts(args), arguments_json: JSON.stringify(args) }, timeout);
  }

  // The events that the program tells, as a stream: first those that were not acknowledged. An earlier subscriber gets no more.
  events() {
    return this.source.Subscribe({});
  }

  // Acknowledges events, as a host that has them on its disk, and refuses others: { id, reason }.
  acknowledge(ids, refused = []) {
    return new Promise((resolve, reject) => {
      this.source.Acknowledge({ ids, refused }, { deadline: Date.now() + PATIENCE }, (error, answer) => (error ? reject(error) : resolve(answer)));
    });
  }

  // A call of a service whose messages are bytes here.
  raw(method, request = Buffer.alloc(0)) {
    return new Promise((resolve, reject) => {
      const same = (bytes) => bytes;
      this.controller.makeUnaryRequest(method, same, same, request, { deadline: Date.now() + PATIENCE }, (error, answer) =>
        error ? reject(error) : resolve(answer),
      );
    });
  }

  // Asks the program to end; gives its exit code.
  async shutdown() {
    // A server that ends may take the connection with it before its answer is read: that is a yes, too.
    await this.raw('/plugin.GRPCController/Shutdown').catch((error) => assert.equal(error.code, grpc.status.UNAVAILABLE));
    const code = await this.ended;
    await this.kill();
    return code;
  }

  async kill() {
    this.client.close();
    this.source.close();
    this.controller.close();
    this.process.kill('SIGKILL');
    await this.ended;
    fs.rmSync(this.directory, { recursive: true, force: true });
  }
};

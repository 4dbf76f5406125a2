'use strict';

const grpc = require('@grpc/grpc-js');
const { load } = require('./proto');
const { StateError, ToolError, Unavailable, Invalid, Contended, QuotaExceeded } = require('./errors');

const { Details } = load('details.proto').talon.details;

// Milliseconds that one operation may take. The socket is on this machine, and the host answers after the value is on the
// disk.
const TIMEOUT = 5000;
// How often a change tries. Each time it fails, somebody else has changed the value.
const MAX_TRIES = 64;
// How many keys of one prefix are listed: as many as a plugin may have unless its operator gave it more.
const MAX_KEYS = 100_000;

// Key-values over something that asks: the host's socket (`hostState`), or `memoryState` of testing.js.
class State {
  #ask;

  constructor(ask) {
    this.#ask = ask;
  }

  async get(key) {
    return (await this.#ask('Get', { key })).value;
  }

  async set(key, value) {
    await this.#ask('Set', { key, value: bytes(value) });
  }

  async delete(key) {
    return (await this.#ask('Delete', { key })).existed;
  }

  async keys(prefix = '') {
    const found = [];
    let token = '';
    do {
      const page = await this.#ask('Keys', { prefix, page_token: token });
      found.push(...page.keys);
      if (found.length > MAX_KEYS) throw new ToolError(`more than ${MAX_KEYS} keys begin with '${prefix}': ask for a longer prefix`);
      token = page.next_page_token;
    } while (token);
    return found;
  }

  async compareAndSet(key, expected, value) {
    const { swapped, current } = await this.#ask('CompareAndSet', { key, expected: bytes(expected), value: bytes(value) });
    return { swapped, current };
  }

  async update(key, change) {
    let old = await this.get(key);
    for (let tries = 0; tries < MAX_TRIES; tries++) {
      const value = bytes(change(old));
      const { swapped, current } = await this.compareAndSet(key, old, value);
      if (swapped) return value;
      // Another call, or another instance of this plugin, was faster.
      old = current;
    }
    throw new Contended(`${key} is changed by too many at once: try again`);
  }

  async getJson(key, otherwise) {
    return parsed(key, await this.get(key), otherwise);
  }

  async setJson(key, value) {
    await this.set(key, JSON.stringify(value));
  }

  async updateJson(key, change, otherwise) {
    let made;
    await this.update(key, (old) => {
      made = change(parsed(key, old, structuredClone(otherwise)));
      return JSON.stringify(made);
    });
    return made;
  }
}

// undefined stays undefined, which means "no such key" here.
function bytes(value) {
  return typeof value === 'string' ? Buffer.from(value) : value;
}

function parsed(key, text, otherwise) {
  if (text === undefined) return otherwise;
  try {
    return JSON.parse(text);
  } catch {
    throw new StateError(`what is kept under ${key} is not JSON`);
  }
}

function hostState(socket) {
  // The client connects at its first use and again when it has to; the bounds keep it from waiting long between attempts.
  const options = { 'grpc.initial_reconnect_backoff_ms': 100, 'grpc.max_reconnect_backoff_ms': 2000 };
  const { State: Client } = load('talon/state/v1/state.proto').talon.state.v1;
  const client = new Client(`unix:${socket}`, grpc.credentials.createInsecure(), options);
  return new State(
    (method, request) =>
      new Promise((resolve, reject) => {
        client[method](request, { deadline: Date.now() + TIMEOUT }, (error, answer) =>
          error ? reject(told(error)) : resolve(answer),
        );
      }),
  );
}

function told(error) {
  const { UNAVAILABLE, DEADLINE_EXCEEDED, RESOURCE_EXHAUSTED, INVALID_ARGUMENT } = grpc.status;
  switch (error.code) {
    case RESOURCE_EXHAUSTED:
      return quota(error) ?? new Unavailable(`the state is busy or has no room: ${error.details}`);
    case UNAVAILABLE:
    case DEADLINE_EXCEEDED:
      return new Unavailable('the state is not available for now: try again later');
    case INVALID_ARGUMENT:
      return new Invalid(error.details);
    default:
      return new StateError(`the state refused: ${error.details}`);
  }
}

function quota(error) {
  const { requestDeserialize, responseDeserialize } = Details.service.Unpack;
  for (const packed of error.metadata?.get('grpc-status-details-bin') ?? []) {
    for (const detail of requestDeserialize(packed).details) {
      if (detail.type_url.endsWith('/talon.state.v1.QuotaExceeded')) {
        return new QuotaExceeded(responseDeserialize(detail.value));
      }
    }
  }
  return undefined;
}

module.exports = { State, hostState };

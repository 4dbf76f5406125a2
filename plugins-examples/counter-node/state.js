'use strict';

const grpc = require('@grpc/grpc-js');
const { load } = require('./proto');

const { State } = load('talon/state/v1/state.proto').talon.state.v1;

// How often one increment tries. Each time it fails, somebody else has counted.
const MAX_TRIES = 100;
// Milliseconds that one operation on the state may take; the socket is on this machine.
const STATE_TIMEOUT = 5000;

// The tool says no; the text goes to the caller.
class Refusal extends Error {}

// Counters in the host's state.
class Counters {
  constructor(socket) {
    // Not there: this host keeps no state. The client connects at the first use and again when it has to; the bounds
    // keep it from waiting long between attempts.
    const options = { 'grpc.initial_reconnect_backoff_ms': 100, 'grpc.max_reconnect_backoff_ms': 2000 };
    this.state = socket && new State(`unix:${socket}`, grpc.credentials.createInsecure(), options);
  }

  async increment(name) {
    const key = `counter/${name}`;
    // undefined means that there is no such key, here and below.
    let old = (await this.ask('Get', { key })).value;
    for (let tries = 0; tries < MAX_TRIES; tries++) {
      const count = Number(old ?? 0) + 1;
      if (!Number.isSafeInteger(count)) throw new Refusal(`${name} does not hold a count`);
      const change = { key, expected: old, value: Buffer.from(String(count)) };
      const swap = await this.ask('CompareAndSet', change);
      if (swap.swapped) return count;
      // Another call, or another instance of this plugin, was faster.
      old = swap.current;
    }
    throw new Refusal(`${name} is counted by too many at once: try again`);
  }

  async reset(name) {
    await this.ask('Set', { key: `counter/${name}`, value: Buffer.from('0') });
  }

  ask(method, request) {
    if (!this.state) throw new Refusal('this host keeps no state: TALON_STATE_SOCKET is not set');
    return new Promise((resolve, reject) => {
      this.state[method](request, { deadline: Date.now() + STATE_TIMEOUT }, (error, answer) => {
        if (!error) return resolve(answer);
        const { UNAVAILABLE, DEADLINE_EXCEEDED } = grpc.status;
        const later = [UNAVAILABLE, DEADLINE_EXCEEDED].includes(error.code);
        // A quota that is used up (RESOURCE_EXHAUSTED) or a key that is too long (INVALID_ARGUMENT): the host's text
        // says what would help.
        reject(new Refusal(later ? 'the counters are not available for now: try again later' : error.details));
      });
    });
  }
}

module.exports = { Counters, Refusal };

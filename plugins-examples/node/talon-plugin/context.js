'use strict';

const { NotServed } = require('./errors');

// One call.
class Context {
  #deadline;
  #state;
  #progress;
  #output;

  constructor({ callId = 'call', config = {}, deadline = Infinity, credentials = {}, signal, state, progress, output } = {}) {
    this.callId = callId;
    this.config = config;
    this.injected = {};
    this.credentials = credentials;
    this.signal = signal ?? new AbortController().signal;
    this.#deadline = Number(deadline);
    this.#state = state;
    this.#progress = progress;
    this.#output = output;
  }

  remaining() {
    return Math.max(0, this.#deadline - Date.now());
  }

  progress(progress, total, message = '') {
    const known = total === undefined ? {} : { total: Number(total) };
    this.#progress?.({ call_id: this.callId, progress: Number(progress), message: String(message), ...known });
  }

  output(text) {
    this.#output?.(this.callId, String(text));
  }

  get state() {
    if (!this.#state) throw new NotServed('this host keeps no state: TALON_STATE_SOCKET is not set');
    return this.#state;
  }
}

module.exports = { Context };

'use strict';

const { ModelError, NotServed } = require('./errors');

// One call.
class Context {
  #deadline;
  #state;
  #model;
  #progress;

  constructor({ callId = 'call', config = {}, deadline = Infinity, credentials = {}, signal, state, model, progress } = {}) {
    this.callId = callId;
    this.config = config;
    this.injected = {};
    this.credentials = credentials;
    this.signal = signal ?? new AbortController().signal;
    this.#deadline = Number(deadline);
    this.#state = state;
    this.#model = model;
    this.#progress = progress;
  }

  remaining() {
    return Math.max(0, this.#deadline - Date.now());
  }

  progress(progress, total, message = '') {
    const known = total === undefined ? {} : { total: Number(total) };
    this.#progress?.({ call_id: this.callId, progress: Number(progress), message: String(message), ...known });
  }

  get state() {
    if (!this.#state) throw new NotServed('this host keeps no state: TALON_STATE_SOCKET is not set');
    return this.#state;
  }

  get model() {
    if (!this.#model) throw new ModelError('not_granted', 'this plugin is granted no model: TALON_MODEL_SOCKET is not set');
    return this.#model.forCall(this.callId, this.signal);
  }
}

module.exports = { Context };

'use strict';

const grpc = require('@grpc/grpc-js');
const { load } = require('./proto');
const { ModelError } = require('./errors');

const { ModelDetails } = load('details.proto').talon.details;

// The granted models, over something that asks: the host's socket (`hostModel`), or `cannedModel` of testing.js.
class Model {
  #ask;
  #call;

  constructor(ask, callId = '') {
    this.#ask = ask;
    this.#call = callId;
  }

  // For a call with this id, whose signal ends its completions.
  forCall(callId, signal) {
    return new Model((method, request) => this.#ask(method, request, signal), callId);
  }

  async granted() {
    return (await this.#ask('List', {})).models.map(({ alias }) => alias);
  }

  async complete(prompt, { model = '', system = '', maxTokens = 0, temperature, stop = [] } = {}) {
    const messages = typeof prompt === 'string' ? [{ role: 'user', text: prompt }] : prompt;
    const known = temperature === undefined ? {} : { temperature };
    const request = { model, messages, system, max_tokens: maxTokens, stop, call_id: this.#call, ...known };
    const { usage, ...answer } = await this.#ask('Complete', request);
    return { ...answer, inputTokens: Number(usage?.input_tokens ?? 0), outputTokens: Number(usage?.output_tokens ?? 0) };
  }
}

function hostModel(socket) {
  // The client connects at its first use and again when it has to; the bounds keep it from waiting long between attempts.
  const options = { 'grpc.initial_reconnect_backoff_ms': 100, 'grpc.max_reconnect_backoff_ms': 2000 };
  const { Model: Client } = load('talon/model/v1/model.proto').talon.model.v1;
  const client = new Client(`unix:${socket}`, grpc.credentials.createInsecure(), options);
  return new Model(
    (method, request, signal) =>
      new Promise((resolve, reject) => {
        const call = client[method](request, (error, answer) => (error ? reject(told(error)) : resolve(answer)));
        signal?.addEventListener('abort', () => call.cancel(), { once: true });
      }),
  );
}

function told(error) {
  const { requestDeserialize, responseDeserialize } = ModelDetails.service.Unpack;
  for (const packed of error.metadata?.get('grpc-status-details-bin') ?? []) {
    for (const detail of requestDeserialize(packed).details) {
      if (detail.type_url.endsWith('/talon.model.v1.Refusal')) {
        return new ModelError(responseDeserialize(detail.value).reason, error.details);
      }
    }
  }
  return new ModelError('unavailable', `the models are not available for now: ${error.details}`);
}

module.exports = { Model, hostModel };

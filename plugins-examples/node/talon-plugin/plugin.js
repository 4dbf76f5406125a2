'use strict';

const args = require('./args');
const log = require('./log');
const { ToolError } = require('./errors');

// How much of data alone is repeated as text for readers who see no data, in characters of JSON.
const DIGEST_CHARS = 512;
const ACTION_NAME = /^[a-zA-Z0-9_-]{1,64}$/;

// An answer: text, and data beside it that a program can read.
class Output {
  constructor(content, structured) {
    this.content = content;
    this.structured = structured;
  }
}

// A name, a description, and tools.
class Plugin {
  #tools = new Map();
  #init;

  constructor(name, description = '') {
    this.name = name;
    this.description = description;
    this.config = {};
  }

  get actions() {
    return [...this.#tools.keys()];
  }

  tool(name, description, parameters, run, options = {}) {
    if (!ACTION_NAME.test(name)) {
      throw new TypeError(`'${name}' is no name of an action: use 1 to 64 of a-z, A-Z, 0-9, _ and -`);
    }
    if (this.#tools.has(name)) throw new TypeError(`there are two tools of the name '${name}'`);
    if (typeof run !== 'function') throw new TypeError(`${name}: its function is the fourth argument`);
    const declared = {
      name,
      description,
      parameters: args.declare(name, parameters),
      read_only: options.readOnly ?? false,
      user_only: options.userOnly ?? false,
      always_include: options.alwaysInclude ?? false,
      inject_context_args: options.inject ?? [],
      // Roles that the action would like to play, such as request_hook (docs/extensions).
      roles: [...(options.roles ?? [])],
      // Jobs that it would like to have; nothing runs before the operator accepts one.
      proposed_jobs: (options.proposedJobs ?? []).map((job) => ({
        name: job.name ?? '',
        cron: job.cron ?? '',
        every: job.every ?? '',
        timezone: job.timezone ?? '',
        arguments_json: job.arguments ? JSON.stringify(job.arguments) : '',
      })),
    };
    if (declared.proposed_jobs.length > 0 && !declared.roles.includes('scheduled_task')) declared.roles.push('scheduled_task');
    if (options.destructive !== undefined) declared.destructive = options.destructive;
    this.#tools.set(name, { declared, parameters, run });
    return this;
  }

  // Lets a source tell the host what happens elsewhere.
  events(source) {
    this.eventSource = source;
    return this;
  }

  init(read) {
    this.#init = read;
    return this;
  }

  async configure(config) {
    if (this.#init) await this.#init(config);
    else if (Object.keys(config).length > 0) {
      throw new Error(`this plugin takes no config; remove ${Object.keys(config).sort().join(', ')}`);
    }
    this.config = config;
  }

  capabilities() {
    const actions = [...this.#tools.values()].map((tool) => tool.declared);
    return { name: this.name, description: this.description, actions };
  }

  // Calls a tool with the texts of a call, and its arguments as JSON where the host sends them; gives the answer as it travels.
  async call(action, texts, context, argumentsJson = '') {
    try {
      return { call_id: context.callId, ...answer(await this.#run(action, texts, context, argumentsJson)) };
    } catch (error) {
      // A tool that says no answers with OK; a gRPC error would be a fault of the plugin. What it did not mean to say is
      // for the log alone.
      if (error instanceof ToolError) return { call_id: context.callId, error: error.message || 'the tool says no' };
      log.error(`${action} failed`, { error: error?.stack ?? String(error) });
      return { call_id: context.callId, error: `${action} failed; the plugin's log says why` };
    }
  }

  #run(action, texts, context, argumentsJson) {
    const tool = this.#tools.get(action);
    if (!tool) throw new ToolError(`no action '${action.slice(0, 64)}'; there are ${this.actions.join(', ') || 'none'}`);
    // What the host put in for the tool, from the caller's session, is no argument of it.
    const given = { ...texts };
    const typed = args.parse(argumentsJson);
    for (const name of tool.declared.inject_context_args) {
      if (Object.hasOwn(given, name)) context.injected[name] = given[name];
      delete given[name];
      if (typed) delete typed[name];
    }
    return tool.run(args.read(action, tool.parameters, given, typed), context);
  }

  serve() {
    require('./serve').serve(this);
  }
}

function answer(result) {
  if (result === undefined || result === null) return { content: '' };
  if (typeof result === 'string') return { content: result };
  const { content, structured } = result instanceof Output ? result : { structured: result };
  const data = structured === undefined ? '' : JSON.stringify(structured) ?? '';
  return { content: content ?? digest(structured, data), structured_content: data };
}

function digest(value, data) {
  if (data.length <= DIGEST_CHARS) return data;
  const what = Array.isArray(value) ? `a list of ${value.length} items` : 'data';
  return `${what}, ${Buffer.byteLength(data)} bytes of JSON in the structured content`;
}

module.exports = { Plugin, Output };

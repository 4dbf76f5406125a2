// Tool plugins for Talon in Node: a function becomes a tool.
//
//   const { Plugin, ToolError } = require('./talon-plugin');
//   const plugin = new Plugin('hello', 'Greets people.');
//   plugin.tool('greet', 'Greets somebody.', { name: { type: 'string' } }, ({ name }) => `Hello, ${name}!`);
//   plugin.serve();
//
// The rest is done for it: socket, handshake, gRPC, arguments, health, deadlines, the end. docs/write-a-plugin.md tells the
// whole of it; testing.js calls tools without a host, and programs without a supervisor.
'use strict';

const { Plugin, Output } = require('./plugin');
const { Context } = require('./context');
const { EventSource } = require('./events');
const { Model } = require('./model');
const { State } = require('./state');
const errors = require('./errors');
const log = require('./log');
const { roles } = require('./roles');
const storage = require('./storage');

module.exports = { Plugin, Output, Context, EventSource, Model, State, log, roles, ...storage, ...errors };

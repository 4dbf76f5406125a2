// An API route: greets who asks.
'use strict';

const { Plugin, roles } = require('./talon-plugin');

const plugin = new Plugin('hello-node', 'Answers requests.');

plugin.tool(
  'reply',
  'Greets who asks.',
  roles.api_route,
  ({ subject }) => ({
    status: 200,
    headers: { 'content-type': 'text/plain; charset=utf-8' },
    body: `Hello, ${subject}!`,
  }),
  { readOnly: true, roles: ['api_route'] },
);

module.exports = plugin;
if (require.main === module) plugin.serve();

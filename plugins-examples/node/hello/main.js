// The smallest plugin in Node: one tool that greets.
'use strict';

const { Plugin, ToolError } = require('./talon-plugin');

const plugin = new Plugin('hello-node', 'Greets people.');

plugin.tool(
  'greet',
  'Greets somebody by name.',
  { name: { type: 'string', description: 'Whom to greet.' } },
  ({ name }) => {
    if (!name.trim()) throw new ToolError('greet whom? give a name');
    return `Hello, ${name}!`;
  },
  { readOnly: true },
);

module.exports = plugin;
if (require.main === module) plugin.serve();

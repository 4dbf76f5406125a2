// A hook: notes what is urgent.
'use strict';

const { Plugin, roles } = require('./talon-plugin');

const plugin = new Plugin('hello-node', 'Looks at messages.');

plugin.tool(
  'look',
  'Notes that a message is urgent.',
  roles.request_hook,
  ({ message }) =>
    message.toLowerCase().includes('urgent')
      ? { verdict: 'annotate', metadata: { priority: 'high' } }
      : { verdict: 'pass' },
  { readOnly: true, roles: ['request_hook'] },
);

module.exports = plugin;
if (require.main === module) plugin.serve();

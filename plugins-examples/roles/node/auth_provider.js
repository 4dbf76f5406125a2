// An auth provider: says whose a token is.
'use strict';

const { Plugin, roles } = require('./talon-plugin');

const plugin = new Plugin('hello-node', 'Says whose tokens are.');

// Whose token it is. Look it up here; nobody is let in before.
function subjectOf(token) {
  return undefined;
}

plugin.tool(
  'authenticate',
  'Says whose a bearer token is.',
  roles.auth_provider,
  ({ credential }) => {
    const subject = subjectOf(credential);
    if (subject === undefined) return { outcome: 'rejected', reason: 'no such token' };
    return { outcome: 'accepted', subject, scopes: ['user'] };
  },
  { readOnly: true, roles: ['auth_provider'] },
);

module.exports = plugin;
if (require.main === module) plugin.serve();

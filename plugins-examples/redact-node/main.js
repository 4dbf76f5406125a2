// A response hook in Node: takes e-mail addresses out of answers.
'use strict';

const { Plugin, roles } = require('./talon-plugin');

const plugin = new Plugin('redact-node', 'Takes e-mail addresses out of answers');

// Bounded repeats: a text cannot make the expression slow.
const ADDRESS = /[A-Za-z0-9._%+-]{1,64}@[A-Za-z0-9-]{1,63}(\.[A-Za-z0-9-]{1,63}){1,4}/g;

plugin.tool(
  'addresses',
  'Puts [address] in place of e-mail addresses',
  roles.response_hook,
  ({ message }) => {
    const redacted = message.replace(ADDRESS, '[address]');
    return redacted === message ? { verdict: 'pass' } : { verdict: 'replace', message: redacted };
  },
  { readOnly: true, roles: ['response_hook'] },
);

plugin.serve();

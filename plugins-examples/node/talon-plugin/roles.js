// The arguments of the roles that actions can play: what `plugin.tool` is given as parameters (docs/extensions).
'use strict';

const object = (description) => ({ type: 'object', description });
const text = (description) => ({ type: 'string', description });

const hook = {
  message: text('The message'),
  session: object('Its session'),
  metadata: object('What earlier hooks noted'),
};

const roles = {
  filter: hook,
  request_hook: hook,
  response_hook: hook,
  notification_sink: {
    event: object('What happened'),
    events: { type: 'array', description: 'The events of a digest', default: [] },
    attempt: { type: 'integer', description: 'The number of the attempt, from 1' },
  },
  // A job's own arguments stand beside it: { ...roles.scheduled_task, days: { type: 'integer' } }.
  scheduled_task: { run: object('Which run of which job it is') },
  auth_provider: {
    scheme: text('The scheme of the header Authorization'),
    credential: text('What follows it'),
    peer: object('Who sent it'),
  },
  api_route: {
    method: text('The method'),
    path: text('The path'),
    query: object('The parameters of the query'),
    headers: object('The headers that the entry lists'),
    body: text('The body'),
    body_encoding: { ...text('How the body is written: text or base64'), default: 'text' },
    subject: text('Whose request it is'),
  },
  storage_backend: {
    op: text('get, set, delete or scan'),
    key: { ...object('The key, sealed'), optional: true },
    value: { ...object('The value, sealed'), optional: true },
    expected: { ...text('The revision that the key has to have'), optional: true },
    prefix: { ...object('How the keys begin, sealed'), optional: true },
    after: { ...object('Only keys behind this one, sealed'), optional: true },
    limit: { type: 'integer', description: 'How many keys at most', default: 500 },
  },
  // What people write is told with an EventSource.
  channel: {
    op: text('open, send, typing or fetch'),
    id: { ...text('What identifies the message, the same in every attempt'), default: '' },
    conversation: { ...text('Where to, as an event said'), default: '' },
    text: { ...text('The text'), default: '' },
    buttons: { type: 'array', description: 'Buttons below the text', default: [] },
    attempt: { type: 'integer', description: 'The number of the attempt, from 1', default: 0 },
    file: { ...text('The id of a file, as a message had it'), default: '' },
    offset: { type: 'integer', description: 'From which byte on', default: 0 },
    max_bytes: { type: 'integer', description: 'How many bytes the whole file may have', default: 0 },
  },
};

module.exports = { roles };

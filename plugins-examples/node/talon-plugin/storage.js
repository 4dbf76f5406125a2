// The envelope of bytes in the role storage_backend: base64url without padding, and their SHA-256.
'use strict';

const { createHash } = require('node:crypto');

const { ToolError } = require('./errors');

const digest = (bytes) => createHash('sha256').update(bytes).digest('base64url');

// Puts bytes into their envelope.
const seal = (bytes) => ({ data: Buffer.from(bytes).toString('base64url'), sha256: digest(bytes) });

// Takes the bytes out; a ToolError if they are not those of the digest.
function unseal({ data, sha256 }) {
  if (typeof data !== 'string' || !/^[A-Za-z0-9_-]*$/.test(data)) {
    throw new ToolError('an envelope is not base64url without padding');
  }
  const bytes = Buffer.from(data, 'base64url');
  if (digest(bytes) !== sha256) throw new ToolError('the digest of an envelope is one of other bytes');
  return bytes;
}

module.exports = { seal, unseal };

// Log lines as hosts of go-plugin read them: hclog's JSON on stderr, a line a record.
'use strict';

const levels = ['debug', 'info', 'warn', 'error'];
// TALON_LOG says from which level on.
const from = Math.max(levels.indexOf(process.env.TALON_LOG || 'info'), 0);

for (const [at, level] of levels.entries()) {
  exports[level] = (message, fields = {}) => {
    if (at < from) return;
    const line = { '@level': level, '@message': String(message), '@timestamp': new Date().toISOString(), ...fields };
    process.stderr.write(`${JSON.stringify(line)}\n`);
  };
}

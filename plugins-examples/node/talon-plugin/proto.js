'use strict';

const path = require('node:path');
const grpc = require('@grpc/grpc-js');
const loader = require('@grpc/proto-loader');

// The messages of a .proto file beside this one, with the names that it gives them. `defaults` fills in what was not
// sent, except for fields that are declared `optional`: those are missing then.
exports.load = (file) =>
  grpc.loadPackageDefinition(
    loader.loadSync(file, { keepCase: true, defaults: true, longs: Number, includeDirs: [path.join(__dirname, 'proto')] }),
  );

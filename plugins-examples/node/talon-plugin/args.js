// Turns declared parameters into their declaration for the host, and the arguments of a call into values.
'use strict';

const { ToolError } = require('./errors');

// How much of an argument that does not fit is shown to the caller.
const SHOWN_CHARS = 60;

const fits = {
  string: (value) => typeof value === 'string',
  integer: Number.isInteger,
  number: Number.isFinite,
  boolean: (value) => typeof value === 'boolean',
  array: Array.isArray,
  object: (value) => typeof value === 'object' && value !== null && !Array.isArray(value),
  any: () => true,
};
const words = {
  string: 'a text',
  integer: 'an integer',
  number: 'a number',
  boolean: 'true or false',
  array: 'an array as JSON text',
  object: 'an object as JSON text',
  any: 'JSON',
};

// The declaration of a tool's parameters for the host; throws when a type cannot be declared.
exports.declare = (tool, parameters) =>
  Object.entries(parameters).map(([name, { description = '', optional = false, default: otherwise, ...schema }]) => {
    if (!Object.hasOwn(fits, schema.type)) {
      throw new TypeError(`${tool}(${name}): type is one of ${Object.keys(fits).join(', ')}, not ${schema.type}`);
    }
    return {
      name,
      description,
      type: schema.type,
      required: !optional && otherwise === undefined,
      schema: Object.keys(schema).length > 1 ? JSON.stringify(schema) : '',
    };
  });

// The arguments with their types, where the host sends them; undefined where it sends texts alone. An integer beyond 2^53 is
// rounded, as JSON.parse does.
exports.parse = (argumentsJson) => {
  if (!argumentsJson) return undefined;
  let typed;
  try {
    typed = JSON.parse(argumentsJson);
  } catch (error) {
    throw new ToolError(`the arguments are no JSON: ${error.message.slice(0, SHOWN_CHARS)}`);
  }
  if (!fits.object(typed)) throw new ToolError('the arguments are no JSON object');
  return typed;
};

// The values of a call's arguments: from `typed`, if the host sent it, where 7 is no "7"; from the texts otherwise. A
// ToolError says what does not fit.
exports.read = (tool, parameters, texts, typed) => {
  const given = typed ?? texts;
  for (const name of Object.keys(given)) {
    if (!Object.hasOwn(parameters, name)) {
      const takes = Object.keys(parameters).sort().join(', ') || 'no arguments';
      throw new ToolError(`unknown argument ${shown(name)}; ${tool} takes ${takes}`);
    }
  }
  const values = {};
  for (const [name, declared] of Object.entries(parameters)) {
    const isGiven = Object.hasOwn(given, name) && (given[name] !== null || declared.type === 'any');
    if (isGiven && typed) values[name] = typedValue(name, declared, given[name]);
    else if (isGiven) values[name] = value(name, declared, given[name]);
    else if (declared.default !== undefined) values[name] = structuredClone(declared.default);
    else if (!declared.optional) throw new ToolError(`argument '${name}' is missing`);
  }
  return values;
};

function typedValue(name, declared, given) {
  // Models write "7" for 7; it is read as it was when it came as a text.
  if (typeof given === 'string' && declared.type !== 'any') return value(name, declared, given);
  return checked(name, declared, given, JSON.stringify(given));
}

function value(name, declared, text) {
  let read = text;
  if (declared.type !== 'string') {
    try {
      read = JSON.parse(text);
    } catch {
      // What takes anything takes the text, too.
      if (declared.type !== 'any') throw misfit(name, declared, text);
    }
  }
  return checked(name, declared, read, text);
}

function checked(name, declared, read, text) {
  const { enum: choices, minimum = -Infinity, maximum = Infinity } = declared;
  const good =
    fits[declared.type](read) &&
    (!choices || choices.includes(read)) &&
    (typeof read !== 'number' || (read >= minimum && read <= maximum));
  if (!good) throw misfit(name, declared, text);
  return read;
}

function misfit(name, { type, enum: choices, minimum, maximum }, text) {
  let wanted = choices ? `one of ${choices.join(', ')}` : words[type];
  if (!choices && minimum !== undefined) wanted += ` from ${minimum}`;
  if (!choices && maximum !== undefined) wanted += ` to ${maximum}`;
  return new ToolError(`argument '${name}': expected ${wanted}, got ${shown(text)}`);
}

function shown(text) {
  return JSON.stringify(text.length <= SHOWN_CHARS ? text : `${text.slice(0, SHOWN_CHARS)}…`);
}

// Options of the scripts here:  node client-sdk1.mjs URL --token T --calls '[{"name":"...","arguments":{}}]'
// --name value and --name=value are the same; what is no option is gathered in `rest`.
export function options(defaults = {}) {
  const found = { rest: [], ...defaults };
  const words = process.argv.slice(2);
  while (words.length > 0) {
    const word = words.shift();
    const [, name, , value] = /^--([^=]+)(=(.*))?$/s.exec(word) ?? [];
    if (name === undefined) found.rest.push(word);
    else if (value !== undefined) found[name] = value;
    else if (words.length > 0 && !words[0].startsWith('--')) found[name] = words.shift();
    else found[name] = true;
  }
  return found;
}

// The calls that a script is asked to make, in order.
export function calls(found) {
  const list = JSON.parse(found.calls ?? '[]');
  if (!Array.isArray(list)) throw new TypeError('--calls takes a JSON array of {name, arguments}');
  return list;
}

// The headers of a signed-in client.
export function headers(found) {
  return found.token ? { Authorization: `Bearer ${found.token}` } : {};
}

// One line of JSON that a test can read.
export function report(what) {
  process.stdout.write(`${JSON.stringify(what)}\n`);
}

// Makes the calls one after the other; a thrown error becomes {error} in its place.
export async function make(client, list) {
  const results = [];
  for (const call of list) {
    try {
      results.push(await client.callTool(call));
    } catch (error) {
      results.push({ error: String(error?.message ?? error) });
    }
  }
  return results;
}

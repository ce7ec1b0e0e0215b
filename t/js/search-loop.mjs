// What a host does with a collapsed list: list, search, run what was found with arguments that its schema asks
// for, once through execute_tool and once by its own name; and go on from an empty answer by its suggestion.
//   node search-loop.mjs URL --token T --sdk 1|2 [--package NAME] [--mode M] --query Q --odd Q2 --none Q3
// --sdk 1: the releases before 2026-07-28 (initialize, a session); 2: the one of both eras (--mode as client-sdk2.mjs).
// --odd: a query that finds nothing and is answered with a suggestion; --none: one without either.
import { headers, options, report } from './args.mjs';

const found = options({ sdk: '1', package: '@modelcontextprotocol/sdk', mode: '2026-07-28' });
const url = new URL(found.rest[0]);
const requestInit = { headers: headers(found) };
const info = { name: `search-loop-${found.sdk}`, version: '1' };

async function open() {
  if (found.sdk === '2') {
    const { Client, StreamableHTTPClientTransport } = await import('@modelcontextprotocol/client');
    const mode = /^\d/.test(found.mode) ? { pin: found.mode } : found.mode;
    const client = new Client(info, { versionNegotiation: { mode } });
    await client.connect(new StreamableHTTPClientTransport(url, { requestInit }));
    return { client, protocol: () => client.getNegotiatedProtocolVersion() };
  }
  const { Client } = await import(`${found.package}/client/index.js`);
  const { StreamableHTTPClientTransport } = await import(`${found.package}/client/streamableHttp.js`);
  const watched = new (class extends Client {
    async request(request, ...rest) {
      const result = await super.request(request, ...rest);
      if (request.method === 'initialize') this.negotiated = result.protocolVersion;
      return result;
    }
  })(info, { capabilities: {} });
  await watched.connect(new StreamableHTTPClientTransport(url, { requestInit }));
  return { client: watched, protocol: () => watched.negotiated };
}

// The least arguments that a schema takes, made from the schema alone.
function value(schema) {
  if (schema.const !== undefined) return schema.const;
  if (Array.isArray(schema.enum)) return schema.enum[0];
  const type = Array.isArray(schema.type) ? schema.type[0] : schema.type;
  if (type === 'integer' || type === 'number') return schema.minimum ?? 1;
  if (type === 'boolean') return true;
  if (type === 'array') return Array.from({ length: schema.minItems ?? 0 }, () => value(schema.items ?? {}));
  if (type === 'object') return least(schema);
  return 'x'.repeat(Math.max(schema.minLength ?? 1, 1));
}

function least(schema) {
  const pairs = (schema.required ?? []).map((name) => [name, value(schema.properties?.[name] ?? {})]);
  return Object.fromEntries(pairs);
}

// The structured answer, which must be the same data as the text beside it; 2025-03-26 has the text alone.
function answer(result) {
  const told = JSON.parse(result.content?.[0]?.text);
  const data = result.structuredContent;
  if (data === undefined && protocol() === '2025-03-26') return told;
  if (JSON.stringify(told) !== JSON.stringify(data)) throw new Error('text and structure differ');
  return data;
}

const { client, protocol } = await open();
const list = async () => (await client.listTools()).tools;
const search = async (query) => answer(await client.callTool({ name: 'search_tools', arguments: { query } }));

const before = await list();
const first = await search(found.query);
const [tool] = first.items;
const args = least(tool.inputSchema);
const executed = await client.callTool({ name: 'execute_tool', arguments: { name: tool.name, arguments: args } });
const direct = await client.callTool({ name: tool.name, arguments: args });

const empty = await search(found.odd);
const retry = empty.suggest === undefined ? undefined : await search(empty.suggest);
const none = await search(found.none);
const after = await list();

report({
  protocol: protocol(),
  server: client.getServerVersion(),
  instructions: client.getInstructions(),
  listed: before.map((entry) => entry.name),
  search: before.find((entry) => entry.name === 'search_tools'),
  same: JSON.stringify(before) === JSON.stringify(after),
  first,
  args,
  executed,
  direct,
  empty,
  retry,
  none,
});
await client.close();

// The TypeScript SDK v2, which speaks both eras.
//   node client-sdk2.mjs URL --token T [--mode legacy|auto|2026-07-28] [--calls JSON]
// legacy: the initialize handshake; auto: server/discover, then what the server can; a date pins that revision.
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { calls, headers, make, options, report } from './args.mjs';

const found = options({ mode: '2026-07-28' });
const mode = /^\d/.test(found.mode) ? { pin: found.mode } : found.mode;
const transport = new StreamableHTTPClientTransport(new URL(found.rest[0]), {
  requestInit: { headers: headers(found) },
});
const client = new Client({ name: 'test-sdk2', version: '1' }, { versionNegotiation: { mode } });
await client.connect(transport);
const { tools } = await client.listTools();
const results = await make(client, calls(found));
report({
  client: 'sdk2',
  era: client.getProtocolEra(),
  protocol: client.getNegotiatedProtocolVersion(),
  session: transport.sessionId !== undefined,
  server: client.getServerVersion(),
  tools: tools.map((tool) => tool.name),
  results,
});
await client.close();

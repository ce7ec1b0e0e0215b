// The TypeScript SDK v1: today's release asks for 2025-11-25. Older releases stand in package.json under names of
// their own (sdk-2025-06-18, sdk-2025-03-26) and ask for the revision of their time, as clients in the field do.
//   node client-sdk1.mjs URL --token T [--package sdk-2025-03-26] [--calls JSON]
import { calls, headers, make, options, report } from './args.mjs';

const found = options({ package: '@modelcontextprotocol/sdk' });
const { Client } = await import(`${found.package}/client/index.js`);
const { StreamableHTTPClientTransport } = await import(`${found.package}/client/streamableHttp.js`);

// The negotiated revision is no public property in every release: it is read as it passes.
class WatchedClient extends Client {
  async request(request, ...rest) {
    const result = await super.request(request, ...rest);
    if (request.method === 'initialize') this.negotiated = result.protocolVersion;
    return result;
  }
}

const transport = new StreamableHTTPClientTransport(new URL(found.rest[0]), {
  requestInit: { headers: headers(found) },
});
const client = new WatchedClient({ name: 'test-sdk1', version: '1' }, { capabilities: {} });
await client.connect(transport);
const { tools } = await client.listTools();
const results = await make(client, calls(found));
report({
  client: found.package,
  protocol: client.negotiated,
  session: transport.sessionId !== undefined,
  server: client.getServerVersion(),
  tools: tools.map((tool) => tool.name),
  results,
});
// ending the session is the client's good manners; the first releases could not
if (transport.sessionId !== undefined) await transport.terminateSession?.();
await client.close();

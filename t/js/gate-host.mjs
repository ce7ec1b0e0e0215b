// One run of the gate: a host with a prompt in front of the gateway. What it did is told as JSON, and judged elsewhere (t/gate).
//   node gate-host.mjs URL --token T --host scripted|anthropic|openai --prompt TEXT [--turns N] [--seconds N]
// --turns: how often the model may answer; --seconds: how long one answer may take.
// The key, address and model of a provider come from the environment: ANTHROPIC_API_KEY, ANTHROPIC_BASE_URL, OPENAI_API_KEY,
// OPENAI_BASE_URL, GATE_MODEL. Tokens are counted by a real tokenizer (o200k_base), whatever the provider says of its own.
import { encode } from 'gpt-tokenizer/encoding/o200k_base';
import { headers, options, report } from './args.mjs';
import { anthropic, openai, Unavailable } from './gate-providers.mjs';
import { scripted } from './gate-scripted.mjs';

const found = options({ host: 'scripted', turns: '8', seconds: '120' });
const url = new URL(found.rest[0]);
const plain = { allowedSpecial: new Set(), disallowedSpecial: new Set() };
const count = (value) => encode(typeof value === 'string' ? value : JSON.stringify(value), plain).length;

async function open() {
  const { Client, StreamableHTTPClientTransport } = await import('@modelcontextprotocol/client');
  const client = new Client({ name: 'gate', version: '1' }, { versionNegotiation: { mode: { pin: '2026-07-28' } } });
  await client.connect(new StreamableHTTPClientTransport(url, { requestInit: { headers: headers(found) } }));
  return client;
}

// What a model is given of a tool.
const definition = ({ name, description, inputSchema }) => ({ name, description, inputSchema });

const hosts = { scripted, anthropic, openai };
const client = await open();
const tools = [];
const listing = performance.now();
let cursor;
do {
  const page = await client.listTools(cursor === undefined ? {} : { cursor });
  tools.push(...page.tools.map(definition));
  cursor = page.nextCursor;
} while (cursor !== undefined);

const listMs = performance.now() - listing;

const instructions = client.getInstructions() ?? '';
const run = {
  host: found.host,
  listed: tools.length,
  names: tools.map((tool) => tool.name),
  definitions: count(tools),
  initial: count(tools) + count(instructions) + count(found.prompt),
  total: 0,
  usage: null,
  calls: [],
  turns: 0,
  listMs,
  text: '',
  skipped: null,
};

// The transcript as a model would be sent it, so that each turn costs what a turn costs.
const transcript = [];
async function call(name, args) {
  const began = performance.now();
  const result = await client.callTool({ name, arguments: args }).catch((error) => ({
    isError: true,
    content: [{ type: 'text', text: String(error?.message ?? error) }],
  }));
  run.calls.push({ name, arguments: args, isError: result.isError === true, ms: performance.now() - began });
  return result;
}
function turn(entry) {
  run.turns += 1;
  run.total += run.initial + count(transcript);
  transcript.push(entry);
}

const began = performance.now();
try {
  const ended = await hosts[found.host]({
    prompt: found.prompt,
    instructions,
    tools,
    call,
    turn,
    note: (entry) => transcript.push(entry),
    turns: Number(found.turns),
    seconds: Number(found.seconds),
    env: process.env,
  });
  run.text = String(ended.text);
  run.usage = ended.usage ?? null;
} catch (error) {
  if (!(error instanceof Unavailable)) throw error;
  run.skipped = error.message;
}
run.ms = performance.now() - began;
await client.close();
report(run);

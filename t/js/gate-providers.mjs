// Hosts that ask a model, over its provider's HTTP API. Each loops until the model calls no more tools: the tools as they are listed, the
// gateway's instructions as the system's, results as they come. Bounded in turns, time, bytes and tries; a key is never printed.

export class Unavailable extends Error {}

const TRIES = 4;
const MAX_WAIT_S = 60;
const MAX_BYTES = 8 * 1024 * 1024;
const OPENAI_MAX_TOOLS = 128; // what chat completions take in one request

const sleep = (ms) => new Promise((resolve) => { setTimeout(resolve, ms); });

async function bounded(response) {
  const chunks = [];
  let size = 0;
  for await (const chunk of response.body ?? []) {
    size += chunk.length;
    if (size > MAX_BYTES) throw new Unavailable(`the provider answers more than ${MAX_BYTES} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

// The provider's word for what is wrong, where it is a word: nothing that could repeat what was sent.
function wordOf(text) {
  const error = parsed(text)?.error;
  const word = error?.code ?? error?.type;
  return typeof word === 'string' && /^[a-z_]{1,60}$/.test(word) ? ` (${word})` : '';
}

// One request, again after 429 and 5xx as the answer asks for it.
async function ask(url, headers, body, seconds) {
  for (let tried = 1; ; tried += 1) {
    let response;
    let text;
    try {
      response = await fetch(url, {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...headers },
        body: JSON.stringify(body),
        redirect: 'error',
        signal: AbortSignal.timeout(seconds * 1000),
      });
      text = await bounded(response);
    } catch (error) {
      if (error instanceof Unavailable) throw error;
      throw new Unavailable(`the provider can't be asked: ${error?.name ?? 'error'}`);
    }
    if (response.status === 200) {
      const answer = parsed(text);
      if (answer === undefined) throw new Unavailable('the provider answers what is no JSON');
      return answer;
    }
    const again = response.status === 429 || response.status >= 500;
    if (!again || tried >= TRIES) throw new Unavailable(`the provider answers ${response.status}${wordOf(text)}`);
    const asked = Number(response.headers.get('retry-after') ?? NaN); // in seconds; a date is left to our own wait
    await sleep(Math.min(asked >= 0 ? asked : 2 ** tried, MAX_WAIT_S) * 1000);
  }
}

const isObject = (value) => typeof value === 'object' && value !== null && !Array.isArray(value);
const textOf = (result) => (result.content ?? []).map((part) => (part.type === 'text' ? part.text : `[${part.type}]`)).join('\n');
const failure = (text) => ({ isError: true, content: [{ type: 'text', text }] });

function need(env, name) {
  if (!env[name]) throw new Unavailable(`${name} is not in the environment`);
  return env[name];
}

const baseOf = (given, usual) => (given || usual).replace(/\/+$/, '');

// What the provider says of tokens; undefined where it says nothing.
function tally() {
  let said;
  return {
    add(input, output) {
      if (typeof input !== 'number') return;
      said ??= { initial: input, input: 0, output: 0 };
      said.input += input;
      said.output += output ?? 0;
    },
    get said() { return said; },
  };
}

export async function anthropic({ prompt, instructions, tools, call, turn, note, turns, seconds, env }) {
  const key = need(env, 'ANTHROPIC_API_KEY');
  const url = `${baseOf(env.ANTHROPIC_BASE_URL, 'https://api.anthropic.com')}/v1/messages`;
  const usage = tally();
  const messages = [{ role: 'user', content: prompt }];
  const offered = tools.map((tool) => ({ name: tool.name, description: tool.description ?? '', input_schema: tool.inputSchema }));
  for (let taken = 0; taken < turns; taken += 1) {
    const answer = await ask(url, { 'x-api-key': key, 'anthropic-version': '2023-06-01' }, {
      model: env.GATE_MODEL || 'claude-sonnet-4-5',
      max_tokens: 2048,
      system: instructions || undefined,
      tools: offered,
      messages,
    }, seconds);
    if (!Array.isArray(answer?.content) || !answer.content.every(isObject)) throw new Unavailable('the provider answers without content');
    const { input_tokens: fresh, cache_read_input_tokens: read = 0, cache_creation_input_tokens: written = 0, output_tokens: out } = answer.usage ?? {};
    usage.add(typeof fresh === 'number' ? fresh + read + written : undefined, out);
    turn({ role: 'assistant', content: answer.content });
    messages.push({ role: 'assistant', content: answer.content });
    const uses = answer.content.filter((part) => part.type === 'tool_use');
    if (uses.length === 0) {
      return { text: answer.content.filter((part) => part.type === 'text').map((part) => part.text).join('\n'), usage: usage.said };
    }
    const results = [];
    for (const use of uses) {
      const result = typeof use.name === 'string' && isObject(use.input ?? {})
        ? await call(use.name, use.input ?? {})
        : failure('a call has a name, and an object of arguments');
      results.push({ type: 'tool_result', tool_use_id: use.id, content: textOf(result), is_error: result.isError === true });
    }
    note({ role: 'user', content: results });
    messages.push({ role: 'user', content: results });
  }
  throw new Unavailable(`the model still calls tools after ${turns} turns`);
}

export async function openai({ prompt, instructions, tools, call, turn, note, turns, seconds, env }) {
  const key = need(env, 'OPENAI_API_KEY');
  const url = `${baseOf(env.OPENAI_BASE_URL, 'https://api.openai.com/v1')}/chat/completions`;
  if (tools.length > OPENAI_MAX_TOOLS) throw new Unavailable(`${tools.length} tools are listed, and chat completions take ${OPENAI_MAX_TOOLS}`);
  const usage = tally();
  const messages = [...(instructions ? [{ role: 'system', content: instructions }] : []), { role: 'user', content: prompt }];
  const offered = tools.map((tool) => ({
    type: 'function',
    function: { name: tool.name, description: tool.description ?? '', parameters: tool.inputSchema },
  }));
  for (let taken = 0; taken < turns; taken += 1) {
    const answer = await ask(url, { authorization: `Bearer ${key}` }, { model: env.GATE_MODEL || 'gpt-4.1', tools: offered, messages }, seconds);
    const message = answer?.choices?.[0]?.message;
    if (!isObject(message)) throw new Unavailable('the provider answers without a message');
    const uses = message.tool_calls ?? [];
    if (!Array.isArray(uses) || !uses.every(isObject)) throw new Unavailable('the provider answers calls that are none');
    usage.add(answer.usage?.prompt_tokens, answer.usage?.completion_tokens);
    turn(message);
    messages.push(message);
    if (uses.length === 0) return { text: message.content ?? '', usage: usage.said };
    for (const use of uses) {
      const args = parsed(use.function?.arguments || '{}');
      const result = typeof use.function?.name === 'string' && isObject(args)
        ? await call(use.function.name, args)
        : failure('a call has a name, and an object of arguments in JSON');
      const entry = { role: 'tool', tool_call_id: use.id, content: textOf(result) };
      note(entry);
      messages.push(entry);
    }
  }
  throw new Unavailable(`the model still calls tools after ${turns} turns`);
}

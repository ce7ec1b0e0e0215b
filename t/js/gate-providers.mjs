// Hosts that ask a model, over its provider's HTTP API. Each loops until the model calls no more tools: the tools as they are listed, the
// gateway's instructions as the system's, results as they come. Bounded in turns, time and tries; a key is never printed.

export class Unavailable extends Error {}

const TIMEOUT_MS = 120_000;
const TRIES = 4;
const MAX_WAIT_S = 60;

const sleep = (ms) => new Promise((resolve) => { setTimeout(resolve, ms); });

// One request, again after 429 and 5xx as the answer asks for it.
async function ask(url, headers, body) {
  for (let tried = 1; ; tried += 1) {
    let response;
    let text;
    try {
      response = await fetch(url, {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...headers },
        body: JSON.stringify(body),
        redirect: 'error',
        signal: AbortSignal.timeout(TIMEOUT_MS),
      });
      text = await response.text();
    } catch (error) {
      throw new Unavailable(`the provider can't be asked: ${error?.name ?? 'error'}`);
    }
    if (response.status === 200) {
      try {
        return JSON.parse(text);
      } catch {
        throw new Unavailable('the provider answers what is no JSON');
      }
    }
    const again = response.status === 429 || response.status >= 500;
    if (!again || tried >= TRIES) throw new Unavailable(`the provider answers ${response.status}`);
    const asked = Number(response.headers.get('retry-after'));
    const wait = Number.isFinite(asked) && asked >= 0 && response.headers.has('retry-after') ? asked : 2 ** tried;
    await sleep(Math.min(wait, MAX_WAIT_S) * 1000);
  }
}

const textOf = (result) => (result.content ?? []).map((part) => (part.type === 'text' ? part.text : `[${part.type}]`)).join('\n');

function need(env, name) {
  if (!env[name]) throw new Unavailable(`${name} is not in the environment`);
  return env[name];
}

export async function anthropic({ prompt, instructions, tools, call, turn, turns, env }) {
  const key = need(env, 'ANTHROPIC_API_KEY');
  const base = (env.ANTHROPIC_BASE_URL ?? 'https://api.anthropic.com').replace(/\/+$/, '');
  const usage = { input: 0, output: 0 };
  const messages = [{ role: 'user', content: prompt }];
  const offered = tools.map((tool) => ({ name: tool.name, description: tool.description ?? '', input_schema: tool.inputSchema }));
  for (let taken = 0; taken < turns; taken += 1) {
    const answer = await ask(`${base}/v1/messages`, { 'x-api-key': key, 'anthropic-version': '2023-06-01' }, {
      model: env.GATE_MODEL ?? 'claude-sonnet-4-5',
      max_tokens: 1024,
      temperature: 0,
      system: instructions || undefined,
      tools: offered,
      messages,
    });
    if (!Array.isArray(answer?.content)) throw new Unavailable('the provider answers without content');
    usage.input += (answer.usage?.input_tokens ?? 0) + (answer.usage?.cache_read_input_tokens ?? 0) + (answer.usage?.cache_creation_input_tokens ?? 0);
    usage.output += answer.usage?.output_tokens ?? 0;
    turn({ role: 'assistant', content: answer.content });
    messages.push({ role: 'assistant', content: answer.content });
    const uses = answer.content.filter((part) => part.type === 'tool_use');
    if (uses.length === 0) {
      return { text: answer.content.filter((part) => part.type === 'text').map((part) => part.text).join('\n'), usage };
    }
    const results = [];
    for (const use of uses) {
      const result = await call(use.name, use.input ?? {});
      results.push({ type: 'tool_result', tool_use_id: use.id, content: textOf(result), is_error: result.isError === true });
    }
    messages.push({ role: 'user', content: results });
  }
  throw new Unavailable(`the model still calls tools after ${turns} turns`);
}

export async function openai({ prompt, instructions, tools, call, turn, turns, env }) {
  const key = need(env, 'OPENAI_API_KEY');
  const base = (env.OPENAI_BASE_URL ?? 'https://api.openai.com/v1').replace(/\/+$/, '');
  const usage = { input: 0, output: 0 };
  const messages = [...(instructions ? [{ role: 'system', content: instructions }] : []), { role: 'user', content: prompt }];
  const offered = tools.map((tool) => ({
    type: 'function',
    function: { name: tool.name, description: tool.description ?? '', parameters: tool.inputSchema },
  }));
  for (let taken = 0; taken < turns; taken += 1) {
    const answer = await ask(`${base}/chat/completions`, { authorization: `Bearer ${key}` }, {
      model: env.GATE_MODEL ?? 'gpt-4.1',
      temperature: 0,
      tools: offered,
      messages,
    });
    const message = answer?.choices?.[0]?.message;
    if (typeof message !== 'object' || message === null) throw new Unavailable('the provider answers without a message');
    usage.input += answer.usage?.prompt_tokens ?? 0;
    usage.output += answer.usage?.completion_tokens ?? 0;
    turn(message);
    messages.push(message);
    const uses = message.tool_calls ?? [];
    if (uses.length === 0) return { text: message.content ?? '', usage };
    for (const use of uses) {
      let args;
      try {
        args = JSON.parse(use.function?.arguments || '{}');
      } catch {
        args = null;
      }
      const result = args === null ? { isError: true, content: [{ type: 'text', text: 'the arguments are no JSON' }] } : await call(use.function.name, args);
      messages.push({ role: 'tool', tool_call_id: use.id, content: textOf(result) });
    }
  }
  throw new Unavailable(`the model still calls tools after ${turns} turns`);
}

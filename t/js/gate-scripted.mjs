// A host without a model: it reads definitions and chooses by the words they share with the prompt. No answer is written into it, so a list that
// describes its tools badly, or a search that finds the wrong ones, makes it choose badly; and it does the same every time.
const idle = new Set(('a an and any are as at be by do does for from give has have i in is it its me my no of on or our please ' +
  'shall should that the their them there this to was we what when where which who will with without you your').split(' '));

const stem = (word) => word.replace(/(?:ies)$/, 'y').replace(/(?:ing|ed|es|s)$/, '');
const words = (text) => (text.replace(/([a-z])([A-Z])/g, '$1 $2').toLowerCase().match(/[a-z]+/g) ?? [])
  .filter((word) => word.length > 1 && !idle.has(word)).map(stem);

// What the prompt says of values: ids like P-7712, and quoted texts.
const ids = (prompt) => prompt.match(/\b[A-Z]+-\d+\b/g) ?? [];

// How much of the prompt's words a tool speaks of; words that many tools have say less.
function chooser(tools, prompt) {
  const asked = [...new Set(words(prompt.replace(/\b[A-Z]+-\d+\b/g, ' ')))];
  const texts = tools.map((tool) => {
    const name = tool.name.split('__').at(-1);
    return { tool, name: new Set(words(name)), all: new Set([...words(tool.name), ...words(tool.description ?? '')]) };
  });
  const weight = new Map(asked.map((word) => [word, Math.log((tools.length + 1) / (texts.filter((text) => text.all.has(word)).length + 1)) + 1]));
  const scored = texts.map((text) => ({
    tool: text.tool,
    hits: asked.filter((word) => text.all.has(word)).length,
    score: asked.reduce((sum, word) => sum + weight.get(word) * ((text.all.has(word) ? 1 : 0) + (text.name.has(word) ? 1 : 0)), 0),
  }));
  scored.sort((a, b) => b.score - a.score || (a.tool.name < b.tool.name ? -1 : 1));
  return { best: scored[0], asked };
}

// The least arguments that a schema takes; text is filled from the prompt where it has something that looks right.
function fill(schema, prompt) {
  const values = ids(prompt);
  const args = {};
  for (const name of schema?.required ?? []) {
    const property = schema.properties?.[name] ?? {};
    if (Array.isArray(property.enum)) [args[name]] = property.enum;
    else if (property.type === 'integer' || property.type === 'number') args[name] = property.minimum ?? 1;
    else if (property.type === 'boolean') args[name] = true;
    else if (property.type === 'object') args[name] = fill(property, prompt);
    else if (property.type === 'array') args[name] = [];
    else args[name] = values.length > 0 ? values.shift() : prompt.slice(0, 80);
  }
  return args;
}

// Where no tool has two of the prompt's words, none is for it.
const fits = (choice) => choice.best !== undefined && choice.best.hits >= 2;

// What can be worked out needs no tool; the answer, or undefined.
function workedOut(prompt) {
  const [, left, right] = /(\d+)\s*\+\s*(\d+)/.exec(prompt) ?? [];
  return left === undefined ? undefined : String(Number(left) + Number(right));
}

export async function scripted({ prompt, tools, call, turn, note }) {
  const answerWith = (text) => {
    turn({ role: 'assistant', content: text });
    return { text };
  };
  const sum = workedOut(prompt);
  if (sum !== undefined) return answerWith(sum);
  let choice = chooser(tools.filter((tool) => !/^(?:elaichi__|search_tools$|execute_tool$)/.test(tool.name)), prompt);
  if (!fits(choice) && tools.some((tool) => tool.name === 'search_tools')) {
    const query = choice.asked.slice(0, 4).join(' ');
    turn({ role: 'assistant', tool: 'search_tools', arguments: { query } });
    const answer = await call('search_tools', { query });
    note({ role: 'tool', content: answer.content });
    choice = chooser(answer.structuredContent?.items ?? [], prompt);
  }
  if (!fits(choice)) return answerWith('No tool is for this.');
  const { tool } = choice.best;
  const args = fill(tool.inputSchema, prompt);
  const isListed = tools.some((entry) => entry.name === tool.name);
  turn({ role: 'assistant', tool: tool.name, arguments: args });
  const result = isListed ? await call(tool.name, args) : await call('execute_tool', { name: tool.name, arguments: args });
  note({ role: 'tool', content: result.content });
  return answerWith(result.content?.[0]?.text ?? '');
}

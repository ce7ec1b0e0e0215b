// Counts texts by a real tokenizer.
//   node tokens.mjs FILE
// FILE: a JSON array of strings. Answers {"characters":[...],"o200k_base":[...],"cl100k_base":[...]}, in their order; a
// character is a code point.
import { readFileSync } from 'node:fs';
import { encode as o200k } from 'gpt-tokenizer/encoding/o200k_base';
import { encode as cl100k } from 'gpt-tokenizer/encoding/cl100k_base';

const texts = JSON.parse(readFileSync(process.argv[2], 'utf8'));
// what looks like a special token in a text is text
const plain = { allowedSpecial: new Set(), disallowedSpecial: new Set() };
process.stdout.write(JSON.stringify({
  characters: texts.map((text) => [...text].length),
  o200k_base: texts.map((text) => o200k(text, plain).length),
  cl100k_base: texts.map((text) => cl100k(text, plain).length),
}));

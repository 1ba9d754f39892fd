"""The reference that the tests of models in directories compare with.

    python3 reference.py vectors DIRECTORY QUESTION...   vectors of texts as a question and as a document, one JSON a line
    python3 reference.py scores DIRECTORY QUESTION TEXT...   the scores of a reranker

It runs a model directory in 64-bit floats, with the packages numpy and tokenizers 0.23.3.
"""
import json, math, os, sys

import numpy as np
from tokenizers import Tokenizer


def settings(directory, name, default=None):
    path = os.path.join(directory, name)
    return json.load(open(path)) if os.path.exists(path) else default


def bfloats(path):
    """Reads a file with tensors of BF16, which numpy has not."""
    raw = open(path, "rb").read()
    size = int.from_bytes(raw[:8], "little")
    tensors = {}
    for name, e in json.loads(raw[8:8 + size]).items():
        if name == "__metadata__":
            continue
        part = raw[8 + size + e["data_offsets"][0]:8 + size + e["data_offsets"][1]]
        kind = {"F32": "<f4", "F16": "<f2", "F64": "<f8", "I64": "<i8", "I32": "<i4", "BF16": "<u2"}[e["dtype"]]
        values = np.frombuffer(part, kind)
        if e["dtype"] == "BF16":
            values = (values.astype("<u4") << 16).view("<f4")
        tensors[name] = values.reshape(e["shape"])
    return tensors


erf = np.vectorize(math.erf)


def activation(name, x):
    if name == "relu":
        return np.maximum(x, 0)
    if name == "gelu":
        return x * (1 + erf(x / math.sqrt(2))) / 2
    return x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))) / 2


class Model:
    def __init__(self, directory):
        self.config = settings(directory, "config.json")
        self.tokenizer = Tokenizer.from_file(os.path.join(directory, "tokenizer.json"))
        self.tokenizer.encode_special_tokens = True
        self.tokenizer.no_truncation()
        self.tokenizer.no_padding()
        self.weights = {k: v.astype(np.float64) for k, v in bfloats(os.path.join(directory, "model.safetensors")).items()}
        self.prompts = settings(directory, "config_sentence_transformers.json", {}).get("prompts", {})
        self.cls = settings(directory, "1_Pooling/config.json", {}).get("pooling_mode_cls_token", False)
        self.prefix = next((k[:-len("embeddings.word_embeddings.weight")] for k in self.weights
                            if k.endswith("embeddings.word_embeddings.weight")), "")

    def w(self, name):
        return self.weights[self.prefix + name]

    def linear(self, x, name):
        return x @ self.w(name + ".weight").T + self.w(name + ".bias")

    def normalize(self, x, name):
        mean = x.mean(axis=1, keepdims=True)
        variance = ((x - mean) ** 2).mean(axis=1, keepdims=True)
        x = (x - mean) / np.sqrt(variance + self.config["layer_norm_eps"])
        return x * self.w(name + ".weight") + self.w(name + ".bias")

    def forward(self, ids, kinds):
        first = 0 if self.config["model_type"] == "bert" else self.config["pad_token_id"] + 1
        x = self.w("embeddings.word_embeddings.weight")[ids]
        x = x + self.w("embeddings.position_embeddings.weight")[first:first + len(ids)]
        x = x + self.w("embeddings.token_type_embeddings.weight")[kinds]
        x = self.normalize(x, "embeddings.LayerNorm")
        heads = self.config["num_attention_heads"]
        size = self.config["hidden_size"] // heads
        for layer in range(self.config["num_hidden_layers"]):
            of = f"encoder.layer.{layer}."
            q, k, v = (self.linear(x, of + "attention.self." + part) for part in ("query", "key", "value"))
            taken = np.zeros_like(x)
            for head in range(heads):
                part = slice(head * size, head * size + size)
                scores = q[:, part] @ k[:, part].T / math.sqrt(size)
                scores = np.exp(scores - scores.max(axis=1, keepdims=True))
                taken[:, part] = scores / scores.sum(axis=1, keepdims=True) @ v[:, part]
            x = self.normalize(x + self.linear(taken, of + "attention.output.dense"), of + "attention.output.LayerNorm")
            wide = activation(self.config["hidden_act"], self.linear(x, of + "intermediate.dense"))
            x = self.normalize(x + self.linear(wide, of + "output.dense"), of + "output.LayerNorm")
        return x

    def vector(self, text, prompt):
        text = self.prompts.get(prompt, "") + text
        if self.config["model_type"] == "model2vec":
            v = self.static(self.tokenizer.encode(text, add_special_tokens=False))
        else:
            e = self.tokenizer.encode(text)
            x = self.forward(e.ids, e.type_ids)
            v = x[0] if self.cls else x.mean(axis=0)
        return v / np.linalg.norm(v)

    def static(self, encoding):
        unknown = {"[UNK]", "<unk>"}
        ids = [i for i in encoding.ids if self.tokenizer.id_to_token(i) not in unknown]
        rows = self.weights["mapping"][ids].astype(int) if "mapping" in self.weights else ids
        weights = self.weights["weights"][ids] if "weights" in self.weights else np.ones(len(ids))
        return weights @ self.weights["embeddings"][rows]

    def score(self, question, text):
        e = self.tokenizer.encode(question, text)
        x = self.forward(e.ids, e.type_ids)[0]
        if self.config["model_type"] == "bert":
            x = np.tanh(self.linear(x, "pooler.dense"))
            return float((x @ self.weights["classifier.weight"].T + self.weights["classifier.bias"])[0])
        x = np.tanh(x @ self.weights["classifier.dense.weight"].T + self.weights["classifier.dense.bias"])
        return float((x @ self.weights["classifier.out_proj.weight"].T + self.weights["classifier.out_proj.bias"])[0])


if __name__ == "__main__":
    model = Model(sys.argv[2])
    if sys.argv[1] == "scores":
        for text in sys.argv[4:]:
            print(json.dumps({"text": text, "score": round(model.score(sys.argv[3], text), 5)}, ensure_ascii=False))
    else:
        for text in sys.argv[3:]:
            vectors = [[round(float(x), 5) for x in model.vector(text, prompt)] for prompt in ("query", "passage")]
            print(json.dumps({"text": text, "question": vectors[0], "document": vectors[1]}, ensure_ascii=False))

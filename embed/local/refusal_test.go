package local_test

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"runtime"
	"strings"
	"testing"

	"github.com/loci-memory/loci/embed/local"
)

// small returns a model that can be run.
func small(t *testing.T, tokenizer string) *modelFiles {
	t.Helper()
	return encoder{kind: "F32", tokenizer: tokenizer, activation: "gelu", hidden: 16, heads: 2, layers: 1, inner: 32,
		epsilon: 1e-12}.files(t)
}

// set changes a setting of config.json.
func set(key string, value any) func(*modelFiles) {
	return func(m *modelFiles) { m.json["config.json"].(map[string]any)[key] = value }
}

// replaced changes text in tokenizer.json.
func replaced(old, replacement string) func(*modelFiles) {
	return func(m *modelFiles) {
		before := string(m.raw["tokenizer.json"])
		if !strings.Contains(before, old) {
			panic("tokenizer.json has no " + old)
		}
		m.raw["tokenizer.json"] = []byte(strings.Replace(before, old, replacement, 1))
	}
}

// file adds a settings file.
func file(name, content string) func(*modelFiles) {
	return func(m *modelFiles) {
		delete(m.json, name)
		m.raw[name] = []byte(content)
	}
}

func TestADirectoryThatIsNotRunIsRefusedInASentence(t *testing.T) {
	t.Parallel()
	const query = "encoder.layer.0.attention.self.query.weight"
	for _, test := range []struct {
		name, tokenizer string
		change          func(*modelFiles)
		want            string
	}{
		{"without settings", "wordpiece", func(m *modelFiles) { delete(m.json, "config.json") }, "config.json is missing"},
		{"settings that are no JSON", "wordpiece", file("config.json", "{"),
			"config.json is not the JSON that is expected: "},
		{"without a tokenizer", "wordpiece", func(m *modelFiles) { delete(m.raw, "tokenizer.json") },
			"tokenizer.json is missing"},
		{"another architecture", "wordpiece", set("model_type", "distilbert"),
			`config.json has the model_type "distilbert"; bert, xlm-roberta and model2vec are run`},
		{"a reranker", "wordpiece", set("architectures", []string{"BertForSequenceClassification"}),
			"config.json has the architecture BertForSequenceClassification, which judges texts and gives no vectors: it may " +
				"be LOCI_RERANK_MODEL_DIR"},
		{"another activation function", "wordpiece", set("hidden_act", "quick_gelu"),
			`config.json has the hidden_act "quick_gelu"; gelu and relu are run`},
		{"relative positions", "wordpiece", set("position_embedding_type", "relative_key"),
			`config.json has the position_embedding_type "relative_key"; absolute is run`},
		{"a decoder", "wordpiece", set("is_decoder", true), "config.json has is_decoder; only encoders are run"},
		{"pruned heads", "wordpiece", set("pruned_heads", map[string]any{"0": []int{1}}),
			"config.json has pruned_heads, which is not supported"},
		{"heads that do not divide", "wordpiece", set("num_attention_heads", 3),
			"config.json has 3 heads of a hidden_size of 16; each must have the same number of values, at least 8"},
		{"a size that no model has", "wordpiece", set("hidden_size", 1<<40), "config.json has a hidden_size of " +
			"1099511627776, an intermediate_size of 32, 1 layers, 2 heads and 64 positions, which is no encoder that can be " +
			"run"},
		{"no layers", "wordpiece", set("num_hidden_layers", -1), "-1 layers"},
		{"another size than the weights", "wordpiece", set("intermediate_size", 64), "model.safetensors: its tensor " +
			"encoder.layer.0.intermediate.dense.weight has the shape [32 16]; config.json asks for [64 16]"},
		{"more layers than weights", "wordpiece", set("num_hidden_layers", 2),
			"model.safetensors: it has no tensor encoder.layer.1.attention.self.query.weight"},
		{"weights of another type", "wordpiece", func(m *modelFiles) {
			m.tensors[query] = tensor{"I64", []int{16, 16}, make([]float32, 256)}
		}, "model.safetensors: its tensor " + query + " is of type I64; F32, F16 and BF16 are read"},
		{"weights that are no numbers", "wordpiece", func(m *modelFiles) {
			m.tensors[query].values[5] /= m.tensors["embeddings.LayerNorm.weight"].values[0] * 0
		}, "model.safetensors: its tensor " + query + " has values that are not finite numbers: fetch it again"},
		{"a dense layer behind", "wordpiece", file("modules.json", `[
			{"path":"","type":"sentence_transformers.models.Transformer"},
			{"path":"2_Dense","type":"sentence_transformers.models.Dense"}]`),
			"modules.json has the module Dense; Transformer, Pooling and Normalize are run"},
		{"a part in another directory", "wordpiece", file("modules.json",
			`[{"path":"0_Transformer","type":"sentence_transformers.models.Transformer"}]`),
			"modules.json has its Transformer in 0_Transformer; it is run where its files are beside modules.json"},
		{"another pooling", "wordpiece", file("1_Pooling/config.json", `{"pooling_mode_max_tokens":true}`),
			"1_Pooling/config.json pools by max_tokens; the mean of all tokens and the first token (cls) are supported"},
		{"two poolings", "wordpiece",
			file("1_Pooling/config.json", `{"pooling_mode_mean_tokens":true,"pooling_mode_cls_token":true}`),
			"1_Pooling/config.json pools by cls_token and mean_tokens; "},
		{"a mean without the prompt", "wordpiece", file("1_Pooling/config.json", `{"include_prompt":false}`),
			"1_Pooling/config.json leaves the prompt out of the mean, which is not supported"},
		{"a pooling of other vectors", "wordpiece", file("1_Pooling/config.json", `{"word_embedding_dimension":384}`),
			"1_Pooling/config.json pools vectors of 384 numbers; config.json has 16"},
		{"a short window", "wordpiece", file("sentence_bert_config.json", `{"max_seq_length":8}`),
			"it takes 8 tokens at once; it must be at least 16"},
		{"a long prompt", "wordpiece", file("config_sentence_transformers.json",
			`{"prompts":{"query":"`+strings.Repeat("a prompt ", 40)+`"}}`),
			"the prompt in config_sentence_transformers.json leaves"},
		{"a tokenizer of bytes", "wordpiece", replaced(`"type":"WordPiece"`, `"type":"BPE"`),
			`tokenizer.json has a model of type "BPE"; WordPiece and Unigram are run`},
		{"a vocabulary of another model", "wordpiece", replaced(`"[PAD]":0`, `"[PAD]":4711`),
			`tokenizer.json gives the piece "[PAD]" the number 4711, and the model has 1250: they are not of one model`},
		{"a number below zero", "wordpiece", replaced(`"[PAD]":0`, `"[PAD]":-1`), `the number -1`},
		{"an unknown unknown piece", "wordpiece", replaced(`"unk_token":"[UNK]"`, `"unk_token":"[?]"`),
			`tokenizer.json has the unk_token "[?]", which is not in its vocabulary`},
		{"another mark of continuations", "wordpiece", replaced(`"continuing_subword_prefix":"##"`,
			`"continuing_subword_prefix":"@@"`), `tokenizer.json has the continuing_subword_prefix "@@"; ## is run`},
		{"another splitter", "wordpiece", replaced(`"BertPreTokenizer"`, `"Whitespace"`),
			"tokenizer.json has WordPiece without the pre_tokenizer BertPreTokenizer, which is not run"},
		{"another normalizer", "wordpiece", replaced(`"BertNormalizer"`, `"ByteLevel"`),
			`tokenizer.json has the normalizer "ByteLevel", which is not run`},
		{"another splitter of Unigram", "unigram", replaced(`"WhitespaceSplit"`, `"Digits"`),
			`tokenizer.json has the pre_tokenizer "Digits", which is not run`},
		{"bytes for what is unknown", "unigram", replaced(`"byte_fallback":false`, `"byte_fallback":true`),
			"tokenizer.json has byte_fallback, which is not run"},
		{"no unknown piece", "unigram", replaced(`"unk_id":3`, `"unk_id":3000`),
			"tokenizer.json has no unk_id that is in its vocabulary"},
		{"an expression", "unigram-metaspace", replaced(`"Regex":" {2,}"`, `"Regex":"(?=a)"`),
			`tokenizer.json replaces the expression "(?=a)", which is not run`},
		{"a broken charsmap", "unigram", replaced(`"precompiled_charsmap":"`, `"precompiled_charsmap":"////`),
			"tokenizer.json: its precompiled_charsmap is broken: fetch it again"},
		{"a first word alone", "unigram", replaced(`"prepend_scheme":"always"`, `"prepend_scheme":"first"`),
			`tokenizer.json has the prepend_scheme "first"; always and never are run`},
		{"a piece that is added", "wordpiece", replaced(`"content":"[MASK]","single_word":false,"lstrip":false,`+
			`"rstrip":false,"normalized":false,"special":true`, `"content":"[MASK]","special":false`),
			`tokenizer.json adds "[MASK]" to its vocabulary, which is not supported: only special tokens may be added`},
		{"nothing that begins a text", "wordpiece", func(m *modelFiles) {
			m.raw["tokenizer.json"] = bytes.Replace(m.raw["tokenizer.json"], []byte(`"post_processor":`), []byte(`"other":`), 1)
		}, "tokenizer.json has no post_processor that says what begins a text"},
		{"another template", "wordpiece", replaced(`"type":"TemplateProcessing"`, `"type":"ByteLevel"`),
			`tokenizer.json has the post_processor "ByteLevel", which is not run`},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			files := small(t, test.tokenizer)
			test.change(files)
			wantRefusal(t, files, test.want)
		})
	}
}

func wantRefusal(t *testing.T, files *modelFiles, want string) {
	t.Helper()
	directory := files.write(t, "model")
	_, err := local.OpenDirectory(directory)
	if err == nil {
		t.Fatalf("the model is used, want %s", want)
	}
	start := "the model in " + directory + " is not used: "
	if got, found := strings.CutPrefix(err.Error(), start); !found || !strings.Contains(got, want) {
		t.Errorf("got\n%s\nwant\n%s", err, start+want)
	}
}

func TestAFileOfWeightsThatIsBrokenIsRefused(t *testing.T) {
	t.Parallel()
	whole := safetensors(small(t, "wordpiece").tensors)
	header := func(change func(map[string]any)) []byte {
		size := binary.LittleEndian.Uint64(whole)
		var h map[string]any
		if err := json.Unmarshal(whole[8:8+size], &h); err != nil {
			t.Fatal(err)
		}
		change(h)
		return withHeader(h, whole[8+size:])
	}
	const query = "encoder.layer.0.attention.self.query.weight"
	entry := func(key string, value any) []byte {
		return header(func(h map[string]any) { h[query].(map[string]any)[key] = value })
	}
	const format = "model.safetensors: it is not in the format safetensors, or it was cut off: fetch it again"
	const place = "model.safetensors: its tensor " + query + " does not lie in it as the header says: fetch it again"
	for _, test := range []struct {
		name string
		file []byte
		want string
	}{
		{"an empty file", nil, format},
		{"a header that is cut off", whole[:100], format},
		{"a header of 2^63 bytes", append([]byte{0, 0, 0, 0, 0, 0, 0, 0x80}, whole[8:]...), format},
		{"a header that is no JSON", append(bytes.Clone(whole[:8]), make([]byte, len(whole)-8)...), format},
		{"data that are cut off", whole[:len(whole)-10], "does not lie in it as the header says: fetch it again"},
		{"a huge shape", entry("shape", []int64{1 << 40, 1 << 40}), place},
		{"a shape below zero", entry("shape", []int{-16, -16}), place},
		{"a shape that is no number", entry("shape", []float64{1e300}), place},
		{"offsets behind the end", entry("data_offsets", []int64{1 << 60, 1<<60 + 1024}), place},
		{"offsets below zero", entry("data_offsets", []int64{-1024, 0}), place},
		{"offsets that go back", entry("data_offsets", []int64{1024, 0}), place},
		{"offsets of another tensor", header(func(h map[string]any) {
			key := h["encoder.layer.0.attention.self.key.weight"].(map[string]any)
			h[query].(map[string]any)["data_offsets"] = key["data_offsets"]
		}), "share bytes: fetch it again"},
		{"another shape", entry("shape", []int{8, 32}), "model.safetensors: its tensor " + query +
			" has the shape [8 32]; config.json asks for [16 16]"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			files := small(t, "wordpiece")
			files.raw["model.safetensors"] = test.file
			wantRefusal(t, files, test.want)
		})
	}
}

func TestAStaticModelThatIsBrokenIsRefused(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name   string
		change func(*modelFiles)
		want   string
	}{
		{"without vectors", func(m *modelFiles) { delete(m.tensors, "embeddings") },
			"model.safetensors: it has no tensor embeddings with a vector of 1 to 32768 numbers for each piece"},
		{"a row that is not there", func(m *modelFiles) {
			m.add("I64", "mapping", words, 0, words)
		}, "model.safetensors: its tensor mapping leads to row 1250, and embeddings has 1250"},
		{"weights of fewer pieces", func(m *modelFiles) { m.add("F32", "weights", 1, 0, 7) },
			"model.safetensors: its tensor weights has the shape [7]; config.json asks for [1250 1]"},
		{"fewer vectors than pieces", func(m *modelFiles) { m.add("F32", "embeddings", 1, 0, 7, 8) },
			"and the model has 7: they are not of one model"},
	} {
		files := static(t, "F32", "wordpiece", 8)
		test.change(files)
		t.Run(test.name, func(t *testing.T) { wantRefusal(t, files, test.want) })
	}
}

// TestSettingsThatPromiseMoreThanTheFileTakeNoMemory opens a small file with the settings of a huge model.
func TestSettingsThatPromiseMoreThanTheFileTakeNoMemory(t *testing.T) {
	files := small(t, "wordpiece")
	for key, value := range map[string]any{"hidden_size": 32768, "intermediate_size": 32768, "num_hidden_layers": 1024,
		"max_position_embeddings": 1 << 20} {
		set(key, value)(files)
	}
	directory := files.write(t, "model")
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := local.OpenDirectory(directory)
	runtime.ReadMemStats(&after)
	if taken := after.TotalAlloc - before.TotalAlloc; err == nil || taken > 16<<20 {
		t.Errorf("got %v, and %d bytes were taken, want an error and at most 16 MiB", err, taken)
	}
}

// FuzzWeightsAndTokenizer opens models with changed files. It gets an error or an encoder, and no panic.
func FuzzWeightsAndTokenizer(f *testing.F) {
	f.Add([]byte("x"), uint(0), uint(0), false)
	f.Add([]byte(`"shape":[4611686018427387904]`), uint(60), uint(4), false)
	f.Add([]byte{0xff, 0xff, 0xff, 0x7f}, uint(3), uint(0), false)
	f.Add([]byte("////"), uint(800), uint(4), true)
	f.Fuzz(func(t *testing.T, inserted []byte, offset, skip uint, unigram bool) {
		tokenizer := "wordpiece"
		if unigram {
			tokenizer = "unigram"
		}
		files := small(t, tokenizer)
		change := func(raw []byte) []byte {
			from := min(int(offset%uint(len(raw)+1)), len(raw))
			to := min(from+int(skip%64), len(raw))
			return append(append(bytes.Clone(raw[:from]), inserted...), raw[to:]...)
		}
		name := []string{"model.safetensors", "tokenizer.json"}[offset%2]
		files.raw["model.safetensors"] = safetensors(files.tensors)
		files.raw[name] = change(files.raw[name])
		e, err := local.OpenDirectory(files.write(t, "model"))
		if err != nil {
			return
		}
		if _, err := e.Embed(t.Context(), []string{"a text, Straße ﬁ é"}); err != nil {
			t.Error(err)
		}
	})
}

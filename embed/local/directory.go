package local

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/loci-memory/loci/embed/endpoint"
)

// Limits for a model in a directory.
const (
	// mostWindow is the most tokens of a text that are computed at once, whatever the model takes.
	mostWindow = 512
	// mostConfigBytes is the greatest size of a settings file, and mostTokenizerBytes of tokenizer.json.
	mostConfigBytes    = 1 << 20
	mostTokenizerBytes = 128 << 20
	// mostValues is the most values of a token, and mostLayers the most layers of a model.
	mostValues, mostLayers = 1 << 15, 1 << 10
	// leastPieces is the least number of a text's pieces that fit into a window.
	leastPieces = 16
)

// quantization names how weights become integers. It is part of the revision of models in directories.
const quantization = "8 bits, smoothed, 1"

// directory is a model on disk.
type directory struct {
	path   string
	hash   []byte // of the files that were read, in their order
	config config
}

// config is the content of config.json.
type config struct {
	ModelType     string            `json:"model_type"`
	Architectures []string          `json:"architectures"`
	Hidden        int               `json:"hidden_size"`
	Layers        int               `json:"num_hidden_layers"`
	Heads         int               `json:"num_attention_heads"`
	Intermediate  int               `json:"intermediate_size"`
	Activation    string            `json:"hidden_act"`
	Epsilon       float32           `json:"layer_norm_eps"`
	Positions     int               `json:"max_position_embeddings"`
	PositionType  string            `json:"position_embedding_type"`
	Kinds         int               `json:"type_vocab_size"`
	Padding       *int              `json:"pad_token_id"`
	Decoder       bool              `json:"is_decoder"`
	Labels        map[string]string `json:"id2label"`
	Pruned        map[string][]int  `json:"pruned_heads"`
	LabelCount    *int              `json:"num_labels"`
}

// static reports whether the model is a table of vectors.
func (c config) static() bool {
	return c.ModelType == "model2vec" || slices.Contains(c.Architectures, "StaticModel")
}

// classifies reports whether the model judges texts and gives no vectors.
func (c config) classifies() bool {
	return slices.ContainsFunc(c.Architectures, func(a string) bool { return strings.HasSuffix(a, classifierSuffix) })
}

const classifierSuffix = "ForSequenceClassification"

// OpenDirectory returns an encoder for a model that is stored in the format of sentence-transformers: config.json,
// tokenizer.json, model.safetensors, and optionally modules.json, 1_Pooling/config.json, sentence_bert_config.json and
// config_sentence_transformers.json. It runs BERT and XLM-RoBERTa with WordPiece or Unigram, and static models of
// model2vec. An error is a sentence that names the directory, and says what this version cannot run or which file is
// wrong.
func OpenDirectory(path string) (*Encoder, error) {
	e, err := openDirectory(path)
	if err != nil {
		return nil, fmt.Errorf("the model in %s is not used: %w", path, err)
	}
	return e, nil
}

func openDirectory(path string) (*Encoder, error) {
	d, err := readDirectory(path)
	if err != nil {
		return nil, err
	}
	read, file, err := d.openTensors()
	if err != nil {
		return nil, err
	}
	defer file.Close() //nolint:errcheck // it was only read
	m := &model{name: filepath.Base(d.path)}
	switch {
	case d.config.static():
		err = m.readTable(d, read)
	case d.config.classifies():
		err = fmt.Errorf("config.json has the architecture %.100s, which judges texts and gives no vectors: it may be "+
			"LOCI_RERANK_MODEL_DIR", strings.Join(d.config.Architectures, ", "))
	default:
		err = m.readEncoder(d, read)
	}
	if err == nil {
		err = d.readPrompts(m)
	}
	if err != nil {
		return nil, err
	}
	if m.dimensions > endpoint.MaxDimension {
		return nil, fmt.Errorf("its vectors have %d numbers; they may have %d", m.dimensions, endpoint.MaxDimension)
	}
	m.revision = revision(d.hash, []byte(quantization), []byte(calibration))
	e := newEncoder(m)
	if err := e.try(); err != nil {
		return nil, err
	}
	return e, nil
}

// try embeds a sentence. It returns an error if the vector is not finite.
func (e *Encoder) try() error {
	pieces := e.tokens.cut("The harbour lies between 2 rivers.").pieces
	var vector []float32
	if e.transformer != nil {
		pieces = slices.Concat(e.begin, pieces, e.end)
		one, p := []window{{ids: pieces[:min(len(pieces), e.window)]}}, e.newPass()
		p.forward(one)
		vector = p.pooled(one, e.pooling)[0]
	}
	if slices.ContainsFunc(vector, notFinite) {
		return ofWeights(errors.New("a sentence gets a vector whose numbers are not finite: the weights are not those of " +
			"such a model"))
	}
	return nil
}

// readDirectory reads config.json.
func readDirectory(path string) (*directory, error) {
	absolute, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	d := &directory{path: absolute}
	info, err := os.Stat(absolute)
	switch {
	case err != nil:
		return nil, errors.Unwrap(err)
	case !info.IsDir():
		return nil, errors.New("it is no directory: name the one that holds config.json")
	}
	d.config = config{Activation: "gelu", Epsilon: builtinEpsilon, Positions: 512, Kinds: 2} // defaults
	return d, d.readJSON("config.json", &d.config, true)
}

// readJSON reads a settings file into v. Unless it is needed, it may be absent.
func (d *directory) readJSON(name string, v any, needed bool) error {
	raw, err := d.read(name, mostConfigBytes)
	switch {
	case errors.Is(err, fs.ErrNotExist) && !needed:
		return nil
	case err != nil:
		return err
	}
	if err := json.Unmarshal(raw, v); err != nil {
		return fmt.Errorf("%s is not the JSON that is expected: %w", name, err)
	}
	return nil
}

// read returns a file, and adds it to the hash.
func (d *directory) read(name string, most int64) ([]byte, error) {
	file, err := os.Open(filepath.Join(d.path, filepath.FromSlash(name)))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &missingError{name}
	} else if err != nil {
		return nil, err
	}
	defer file.Close() //nolint:errcheck // it was only read
	raw, err := io.ReadAll(io.LimitReader(file, most+1))
	if err != nil {
		return nil, err
	}
	if int64(len(raw)) > most {
		return nil, fmt.Errorf("%s has more than %d bytes", name, most)
	}
	d.add(name, sha256.Sum256(raw))
	return raw, nil
}

func (d *directory) add(name string, sum [sha256.Size]byte) {
	d.hash = append(append(append(d.hash, name...), 0), hex.EncodeToString(sum[:])...)
}

// missingError is the error for an absent file.
type missingError struct{ name string }

func (e *missingError) Error() string {
	if e.name == weightsFile {
		return e.name + " is missing: weights are read from this one file alone, not from ONNX, from pytorch_model.bin " +
			"or from a file in several parts"
	}
	return e.name + " is missing"
}

// Unwrap returns fs.ErrNotExist.
func (e *missingError) Unwrap() error { return fs.ErrNotExist }

const weightsFile = "model.safetensors"

// openTensors opens the file of weights, and adds it to the hash. The caller closes the file.
func (d *directory) openTensors() (*tensors, *os.File, error) {
	file, err := os.Open(filepath.Join(d.path, weightsFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, &missingError{weightsFile}
	} else if err != nil {
		return nil, nil, err
	}
	read, err := d.hashTensors(file)
	if err != nil {
		file.Close() //nolint:errcheck,gosec // it was only read
		return nil, nil, ofWeights(err)
	}
	return read, file, nil
}

func (d *directory) hashTensors(file *os.File) (*tensors, error) {
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	sum := sha256.New()
	if _, err := io.Copy(sum, file); err != nil {
		return nil, err
	}
	d.add(weightsFile, [sha256.Size]byte(sum.Sum(nil)))
	return newTensors(file, info.Size())
}

func ofWeights(err error) error { return fmt.Errorf("%s: %w", weightsFile, err) }

// module is an entry of modules.json: one step from text to vector.
type module struct {
	Path string `json:"path"`
	Type string `json:"type"`
}

// modules returns the modules, with the last part of their types as keys. It returns nil if there is no modules.json.
func (d *directory) modules() (map[string]module, error) {
	var list []module
	if err := d.readJSON("modules.json", &list, false); err != nil {
		return nil, err
	}
	modules := map[string]module{}
	for _, m := range list {
		modules[m.Type[strings.LastIndex(m.Type, ".")+1:]] = m
	}
	return modules, nil
}

// readPooling returns how the vectors of tokens become one. Without the file it is their mean.
func (d *directory) readPooling(hidden int) (pooling, error) {
	modules, err := d.modules()
	if err != nil {
		return 0, err
	}
	for name, m := range modules {
		if !slices.Contains([]string{"Transformer", "Pooling", "Normalize"}, name) {
			return 0, fmt.Errorf("modules.json has the module %.100s; Transformer, Pooling and Normalize are run", name)
		}
		if name == "Transformer" && m.Path != "" {
			return 0, fmt.Errorf("modules.json has its Transformer in %.100s; it is run where its files are beside "+
				"modules.json", m.Path)
		}
	}
	folder := "1_Pooling"
	if m, found := modules["Pooling"]; found && filepath.IsLocal(m.Path) {
		folder = m.Path
	}
	return d.poolingIn(folder+"/config.json", hidden)
}

func (d *directory) poolingIn(name string, hidden int) (pooling, error) {
	settings := map[string]any{}
	if err := d.readJSON(name, &settings, false); err != nil {
		return 0, err
	}
	if n, found := settings["word_embedding_dimension"].(float64); found && n != float64(hidden) {
		return 0, fmt.Errorf("%s pools vectors of %v numbers; config.json has %d", name, n, hidden)
	}
	if included, found := settings["include_prompt"].(bool); found && !included {
		return 0, fmt.Errorf("%s leaves the prompt out of the mean, which is not supported", name)
	}
	modes := map[string]pooling{"mean_tokens": mean, "cls_token": firstToken, "mean": mean, "cls": firstToken}
	var chosen []string
	for key, value := range settings {
		if mode, found := strings.CutPrefix(key, "pooling_mode_"); found && value == true {
			chosen = append(chosen, mode)
		}
	}
	if mode, found := settings["pooling_mode"].(string); found {
		chosen = []string{mode}
	}
	if len(chosen) == 0 {
		return mean, nil
	}
	slices.Sort(chosen)
	method, found := modes[chosen[0]]
	if !found || len(chosen) > 1 {
		return 0, fmt.Errorf("%s pools by %.100s; the mean of all tokens and the first token (cls) are supported", name,
			strings.Join(chosen, " and "))
	}
	return method, nil
}

// readPrompts reads the prompts for queries and documents, and cuts them into pieces.
func (d *directory) readPrompts(m *model) error {
	var settings struct {
		Prompts map[string]string `json:"prompts"`
		Default *string           `json:"default_prompt_name"`
	}
	const name = "config_sentence_transformers.json"
	if err := d.readJSON(name, &settings, false); err != nil {
		return err
	}
	fallback := ""
	if settings.Default != nil {
		fallback = settings.Prompts[*settings.Default]
	}
	named := func(names ...string) (p prompt) {
		p.text = fallback
		for _, name := range names {
			if text, found := settings.Prompts[name]; found {
				p.text = text
				break
			}
		}
		p.pieces = m.tokens.cut(p.text).pieces
		return p
	}
	m.prompts.query, m.prompts.document = named("query"), named("document", "passage", "corpus")
	if m.transformer == nil {
		return nil
	}
	for _, p := range []prompt{m.prompts.query, m.prompts.document} {
		if room := m.window - len(m.begin) - len(m.end) - len(p.pieces); room < leastPieces {
			return fmt.Errorf("the prompt in %s leaves room for %d pieces of a text; it must be at least %d", name, room,
				leastPieces)
		}
	}
	return nil
}

// windowOf returns how many tokens a model with the given number of positions computes at once.
func (d *directory) windowOf(positions int) (int, error) {
	var settings struct {
		Most *int `json:"max_seq_length"`
	}
	if err := d.readJSON("sentence_bert_config.json", &settings, false); err != nil {
		return 0, err
	}
	window := min(positions, mostWindow)
	if settings.Most != nil {
		window = min(window, *settings.Most)
	}
	if window < leastPieces {
		return 0, fmt.Errorf("it takes %d tokens at once; it must be at least %d", window, leastPieces)
	}
	return window, nil
}

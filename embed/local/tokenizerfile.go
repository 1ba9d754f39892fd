package local

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
)

const piecesFile = "tokenizer.json"

// tokenizerFile is tokenizer.json.
type tokenizerFile struct {
	Added         []addedToken  `json:"added_tokens"`
	Normalizer    *part         `json:"normalizer"`
	PreTokenizer  *part         `json:"pre_tokenizer"`
	PostProcessor *postprocess  `json:"post_processor"`
	Model         tokenizerCore `json:"model"`
}

// addedToken is a piece that tokenizers find in texts before they cut them. Here only special ones are allowed, and
// texts are not searched for them.
type addedToken struct {
	ID      int    `json:"id"`
	Content string `json:"content"`
	Special bool   `json:"special"`
}

// tokenizerCore is the vocabulary.
type tokenizerCore struct {
	Type         string          `json:"type"`
	Vocabulary   json.RawMessage `json:"vocab"`
	Unknown      string          `json:"unk_token"`
	UnknownID    *int            `json:"unk_id"`
	Continues    *string         `json:"continuing_subword_prefix"`
	LongestWord  *int            `json:"max_input_chars_per_word"`
	ByteFallback bool            `json:"byte_fallback"`
}

// postprocess says which pieces surround texts.
type postprocess struct {
	Type    string            `json:"type"`
	Single  []json.RawMessage `json:"single"`
	Pair    []json.RawMessage `json:"pair"`
	Special map[string]struct {
		IDs []int `json:"ids"`
	} `json:"special_tokens"`
	Begin json.RawMessage `json:"cls"`
	End   json.RawMessage `json:"sep"`
}

// tokenization is a tokenizer, with the pieces before and after a text, and between two texts.
type tokenization struct {
	pieces     tokenizer
	begin, end []int32
	between    []int32
	secondKind bool // a second text is of the second kind
}

// readTokenizer reads tokenizer.json. All numbers of pieces in it are below most.
func (d *directory) readTokenizer(most int) (t tokenization, err error) {
	raw, err := d.read(piecesFile, mostTokenizerBytes)
	if err != nil {
		return t, err
	}
	var f tokenizerFile
	if err := json.Unmarshal(raw, &f); err != nil {
		return t, fmt.Errorf("tokenizer.json is not the JSON that is expected: %w", err)
	}
	for _, added := range f.Added {
		if !added.Special {
			return t, fmt.Errorf("tokenizer.json adds %.50q to its vocabulary, which is not supported: only special tokens may "+
				"be added", added.Content)
		}
	}
	if t.pieces, err = f.tokenizer(most); err != nil {
		return t, err
	}
	return t, f.PostProcessor.around(&t, most)
}

func (f tokenizerFile) tokenizer(most int) (tokenizer, error) {
	m := f.Model
	if m.Type == "" && len(m.Vocabulary) > 0 && m.Vocabulary[0] == '[' {
		m.Type = "Unigram" // old files do not say so
	}
	switch m.Type {
	case "WordPiece":
		return f.wordPieces(most)
	case "Unigram":
		return f.unigram(most)
	}
	return nil, fmt.Errorf("tokenizer.json has a model of type %.50q; WordPiece and Unigram are run", m.Type)
}

func (f tokenizerFile) wordPieces(most int) (tokenizer, error) {
	m := f.Model
	ids := map[string]int32{}
	if err := json.Unmarshal(m.Vocabulary, &ids); err != nil {
		return nil, fmt.Errorf("tokenizer.json has a vocabulary that is not read: %w", err)
	}
	for piece, id := range ids {
		if err := checkID(piece, int(id), most); err != nil {
			return nil, err
		}
	}
	unknown, found := ids[m.Unknown]
	switch {
	case !found:
		return nil, fmt.Errorf("tokenizer.json has the unk_token %.50q, which is not in its vocabulary", m.Unknown)
	case m.Continues != nil && *m.Continues != continues:
		return nil, fmt.Errorf("tokenizer.json has the continuing_subword_prefix %.50q; %s is run", *m.Continues, continues)
	case f.PreTokenizer == nil || f.PreTokenizer.Type != "BertPreTokenizer":
		return nil, errors.New("tokenizer.json has WordPiece without the pre_tokenizer BertPreTokenizer, which is not run")
	}
	w := newWordPieces(ids, bert{})
	w.unknown = unknown
	if m.LongestWord != nil {
		w.longestWord = *m.LongestWord
	}
	if n := f.Normalizer; n != nil && n.Type == "BertNormalizer" {
		w.bert = n.bert()
		return w, nil
	}
	normalize, err := f.Normalizer.normalizer()
	return normalized{w, normalize}, err
}

// normalized is a tokenizer that changes texts before it cuts them.
type normalized struct {
	tokenizer
	normalize func(string) string
}

func (n normalized) cut(s string) text { return n.tokenizer.cut(n.normalize(s)) }

func (f tokenizerFile) unigram(most int) (tokenizer, error) {
	var vocabulary []scored
	if err := json.Unmarshal(f.Model.Vocabulary, &vocabulary); err != nil {
		return nil, fmt.Errorf("tokenizer.json has a vocabulary that is not read: %w", err)
	}
	switch unknown := f.Model.UnknownID; {
	case len(vocabulary) > most:
		return nil, checkID(vocabulary[most].piece, most, most)
	case unknown == nil || *unknown < 0 || *unknown >= len(vocabulary):
		return nil, errors.New("tokenizer.json has no unk_id that is in its vocabulary")
	case f.Model.ByteFallback:
		return nil, errors.New("tokenizer.json has byte_fallback, which is not run")
	}
	normalize, err := f.Normalizer.normalizer()
	if err != nil {
		return nil, err
	}
	split, err := f.PreTokenizer.splitter()
	if err != nil {
		return nil, err
	}
	u := newUnigram(vocabulary, int32(*f.Model.UnknownID)) //nolint:gosec // it is below most
	u.normalize, u.split = normalize, func(s string) []string { return split([]string{s}) }
	return u, nil
}

// UnmarshalJSON implements json.Unmarshaler: a piece and its score are a list of two.
func (s *scored) UnmarshalJSON(raw []byte) error {
	return json.Unmarshal(raw, &[2]any{&s.piece, &s.score})
}

func checkID(piece string, id, most int) error {
	if id < 0 || id >= most {
		return fmt.Errorf("tokenizer.json gives the piece %.50q the number %d, and the model has %d: they are not of one "+
			"model", piece, id, most)
	}
	return nil
}

// around reads the pieces that surround texts.
func (p *postprocess) around(t *tokenization, most int) error {
	var single, pair []templated
	var err error
	switch {
	case p == nil:
		return nil
	case p.Type == "TemplateProcessing":
		if single, err = p.template(p.Single); err != nil {
			return err
		}
		if pair, err = p.template(p.Pair); err != nil {
			return err
		}
	case p.Type == "BertProcessing" || p.Type == "RobertaProcessing":
		if single, pair, err = p.fixed(); err != nil {
			return err
		}
	default:
		return fmt.Errorf("tokenizer.json has the post_processor %.50q, which is not run", p.Type)
	}
	for _, item := range slices.Concat(single, pair) {
		for _, id := range item.ids {
			if err := checkID("of "+piecesFile+"'s post_processor", int(id), most); err != nil {
				return err
			}
		}
	}
	place := slices.IndexFunc(single, templated.isText)
	if place < 0 || place == 0 && len(single) > 1 && single[1].isText() {
		return errors.New("tokenizer.json has a post_processor without a place for the text")
	}
	t.begin, t.end = idsOf(single[:place]), idsOf(single[place+1:])
	return t.readPair(pair)
}

// readPair reads the pieces between two texts. The pieces around the two must be the same as around one.
func (t *tokenization) readPair(pair []templated) error {
	if len(pair) == 0 {
		return nil
	}
	first := slices.IndexFunc(pair, templated.isText)
	second := first + 1 + slices.IndexFunc(pair[first+1:], templated.isText)
	if first < 0 || second == first || !slices.Equal(idsOf(pair[:first]), t.begin) ||
		!slices.Equal(idsOf(pair[second+1:]), t.end) {
		return errors.New("tokenizer.json has a post_processor for two texts that is not run: what begins and ends " +
			"them must be as for one")
	}
	t.between, t.secondKind = idsOf(pair[first+1:second]), pair[second].kind > 0
	return nil
}

// templated is a text or a list of pieces in a template.
type templated struct {
	ids  []int32 // nil: a text
	kind int
}

func (t templated) isText() bool { return t.ids == nil }

func idsOf(items []templated) (ids []int32) {
	for _, item := range items {
		ids = append(ids, item.ids...)
	}
	return ids
}

func (p *postprocess) template(raw []json.RawMessage) (items []templated, err error) {
	for _, r := range raw {
		var item struct {
			Special *struct {
				ID   string `json:"id"`
				Kind int    `json:"type_id"`
			} `json:"SpecialToken"`
			Text *struct {
				Kind int `json:"type_id"`
			} `json:"Sequence"`
		}
		err := json.Unmarshal(r, &item)
		switch {
		case err != nil || item.Special == nil && item.Text == nil:
			return nil, fmt.Errorf("tokenizer.json has the post_processor with %.100s, which is not run", r)
		case item.Text != nil:
			items = append(items, templated{kind: item.Text.Kind})
		default:
			ids := []int32{}
			for _, id := range p.Special[item.Special.ID].IDs {
				ids = append(ids, int32(min(max(id, -1), 1<<30))) //nolint:gosec // it is in these bounds
			}
			if len(ids) == 0 {
				return nil, fmt.Errorf("tokenizer.json has a post_processor without a number of %.50q", item.Special.ID)
			}
			items = append(items, templated{ids: ids, kind: item.Special.Kind})
		}
	}
	return items, nil
}

// fixed returns the templates of BertProcessing and RobertaProcessing.
func (p *postprocess) fixed() (single, pair []templated, err error) {
	ids := [2]int32{}
	for i, raw := range []json.RawMessage{p.Begin, p.End} {
		var name string
		if err := json.Unmarshal(raw, &[2]any{&name, &ids[i]}); err != nil {
			return nil, nil, fmt.Errorf("tokenizer.json has a post_processor that is not read: %w", err)
		}
	}
	begin, end, text := templated{ids: ids[:1]}, templated{ids: ids[1:]}, templated{}
	single = []templated{begin, text, end}
	if p.Type == "BertProcessing" {
		return single, []templated{begin, text, end, {kind: 1}, end}, nil
	}
	return single, []templated{begin, text, end, end, text, end}, nil
}

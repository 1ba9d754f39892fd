package local

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// part is a normalizer or a pre-tokenizer in tokenizer.json: its type, and the settings of all types.
type part struct {
	Type string `json:"type"`

	Normalizers   []part `json:"normalizers"`   // of a Sequence
	Pretokenizers []part `json:"pretokenizers"` // of a Sequence

	CleanText    bool  `json:"clean_text"`
	Chinese      bool  `json:"handle_chinese_chars"`
	StripAccents *bool `json:"strip_accents"`
	LowerCase    bool  `json:"lowercase"`

	Charsmap string          `json:"precompiled_charsmap"` // in base64
	Pattern  json.RawMessage `json:"pattern"`
	Content  string          `json:"content"`
	Left     bool            `json:"strip_left"`
	Right    bool            `json:"strip_right"`
	Prepend  string          `json:"prepend"`

	Replacement   string `json:"replacement"`
	PrependSpace  *bool  `json:"add_prefix_space"` // in old files, in place of PrependScheme
	PrependScheme string `json:"prepend_scheme"`
	Split         *bool  `json:"split"`
}

// bert returns the settings of a BertNormalizer.
func (p part) bert() bert {
	b := bert{clean: p.CleanText, chinese: p.Chinese, stripAccents: p.LowerCase, lowerCase: p.LowerCase}
	if p.StripAccents != nil {
		b.stripAccents = *p.StripAccents
	}
	return b
}

// normalizer returns a function that changes a text before it is split into words.
func (p *part) normalizer() (func(string) string, error) {
	if p == nil {
		return func(s string) string { return s }, nil
	}
	switch p.Type {
	case "Sequence":
		return sequence(p.Normalizers, (*part).normalizer)
	case "BertNormalizer":
		return p.bert().normalize, nil
	case "Precompiled":
		return p.charsmap()
	case "NFC":
		return norm.NFC.String, nil
	case "NFD":
		return norm.NFD.String, nil
	case "NFKC":
		return norm.NFKC.String, nil
	case "NFKD":
		return norm.NFKD.String, nil
	case "Nmt":
		return func(s string) string { return strings.Map(nmt, s) }, nil
	case "Lowercase":
		return bert{lowerCase: true}.normalize, nil
	case "StripAccents":
		return withoutMarks, nil
	case "Strip":
		return p.strip, nil
	case "Prepend":
		return p.prepend, nil
	case "Replace":
		return p.replace()
	}
	return nil, fmt.Errorf("tokenizer.json has the normalizer %.50q, which is not run", p.Type)
}

// sequence returns a function that calls the functions of all parts one after the other.
func sequence[T any](parts []part, build func(*part) (func(T) T, error)) (func(T) T, error) {
	steps := make([]func(T) T, len(parts))
	for i := range parts {
		step, err := build(&parts[i])
		if err != nil {
			return nil, err
		}
		steps[i] = step
	}
	return func(x T) T {
		for _, step := range steps {
			x = step(x)
		}
		return x
	}, nil
}

// normalize returns the text that BERT's tokenizer splits into words.
func (b bert) normalize(s string) string {
	if b.stripAccents {
		s = decomposed(s)
	}
	normalized := make([]byte, 0, len(s))
	for _, r := range s {
		switch {
		case b.clean && isDropped(r) || b.stripAccents && unicode.Is(unicode.Mn, r):
		case b.clean && isSpace(r):
			normalized = append(normalized, ' ')
		case b.chinese && isChinese(r):
			normalized = append(b.lower(append(normalized, ' '), r), ' ')
		default:
			normalized = b.lower(normalized, r)
		}
	}
	return string(normalized)
}

func (p *part) charsmap() (func(string) string, error) {
	compiled, err := base64.StdEncoding.DecodeString(p.Charsmap)
	if err != nil {
		return nil, fmt.Errorf("tokenizer.json has a precompiled_charsmap that is not in base64: %w", err)
	}
	c, err := newCharsmap(compiled)
	if err != nil {
		return nil, fmt.Errorf("tokenizer.json: %w", err)
	}
	return c.replace, nil
}

// withoutMarks drops accents that are separate characters.
func withoutMarks(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.Is(unicode.M, r) {
			return -1
		}
		return r
	}, s)
}

// nmt replaces characters that are no text, as the normalizer Nmt does.
func nmt(r rune) rune {
	switch {
	case r >= 1 && r <= 8, r == 0xb, r >= 0xe && r <= 0x1f, r == 0x7f, r == 0x8f, r == 0x9f:
		return -1
	case r == '\t', r == '\n', r == '\f', r == '\r', r == 0x1680, r >= 0x200b && r <= 0x200f, r == 0x2028, r == 0x2029,
		r == 0x2581, r == 0xfeff, r == 0xfffd:
		return ' '
	}
	return r
}

func (p *part) strip(s string) string {
	if p.Left {
		s = strings.TrimLeftFunc(s, isSpace)
	}
	if p.Right {
		s = strings.TrimRightFunc(s, isSpace)
	}
	return s
}

func (p *part) prepend(s string) string {
	if s == "" {
		return s
	}
	return p.Prepend + s
}

// knownPatterns maps the expressions that models use → Go's syntax.
var knownPatterns = map[string]*regexp.Regexp{
	" {2,}": regexp.MustCompile(" {2,}"),
	`\s+`:   regexp.MustCompile(`[\s\v\x{85}\p{Z}]+`),
}

func (p *part) replace() (func(string) string, error) {
	var pattern struct {
		String *string `json:"String"`
		Regex  string  `json:"Regex"`
	}
	if err := json.Unmarshal(p.Pattern, &pattern); err != nil {
		return nil, fmt.Errorf("tokenizer.json replaces the pattern %.100s, which is not run", p.Pattern)
	}
	if pattern.String != nil {
		return func(s string) string { return strings.ReplaceAll(s, *pattern.String, p.Content) }, nil
	}
	expression, known := knownPatterns[pattern.Regex]
	if !known {
		return nil, fmt.Errorf("tokenizer.json replaces the expression %.100q, which is not run", pattern.Regex)
	}
	return func(s string) string { return expression.ReplaceAllLiteralString(s, p.Content) }, nil
}

// splitter returns a function that splits a text into words.
func (p *part) splitter() (func([]string) []string, error) {
	if p == nil {
		return func(words []string) []string { return words }, nil
	}
	switch p.Type {
	case "Sequence":
		return sequence(p.Pretokenizers, (*part).splitter)
	case "WhitespaceSplit":
		return eachWord(func(s string) []string { return strings.FieldsFunc(s, isSpace) }), nil
	case "BertPreTokenizer":
		return eachWord(func(s string) (words []string) {
			for word := range (bert{}).split(s) {
				words = append(words, word)
			}
			return words
		}), nil
	case "Metaspace":
		return p.metaspace()
	}
	return nil, fmt.Errorf("tokenizer.json has the pre_tokenizer %.50q, which is not run", p.Type)
}

func eachWord(split func(string) []string) func([]string) []string {
	return func(words []string) (parts []string) {
		for _, word := range words {
			parts = append(parts, split(word)...)
		}
		return parts
	}
}

func (p *part) metaspace() (func([]string) []string, error) {
	mark := p.Replacement
	if mark == "" {
		mark = metaspace
	}
	prepend := p.PrependSpace == nil || *p.PrependSpace
	switch p.PrependScheme {
	case "", "always":
	case "never":
		prepend = false
	default:
		return nil, fmt.Errorf("tokenizer.json has the prepend_scheme %.50q; always and never are run", p.PrependScheme)
	}
	return splitMetaspace(mark, prepend, p.Split == nil || *p.Split), nil
}

package policy

import (
	"unicode/utf8"

	"github.com/loci-memory/loci/compaction/clip"
	"github.com/loci-memory/loci/compaction/plan"
	"github.com/loci-memory/loci/recall"
)

// How to count the tokens of a prompt. A trigger's setting names one of them.
const (
	byLoci  = "loci"  // a provider's count of the beginning, and Loci's count of the rest
	byChars = "chars" // a provider's count of the beginning, and a quarter of the characters of the rest
)

// Counting is how a trigger counts tokens. Each trigger that counts tokens has these settings.
type Counting struct {
	Count       string  `json:"count" oneof:"loci,chars" doc:"By Loci, or four characters a token."`
	CountFactor float64 `json:"count_factor" min:"1" max:"4" doc:"Raises the count."`
}

// asLoci is the default.
var asLoci = Counting{Count: byLoci, CountFactor: 1}

// tokens returns the tokens of a prompt.
func (c Counting) tokens(v clip.View, at Moment) int {
	n := at.tokens(v)
	if c.Count == byChars {
		n = charTokens(v)
	}
	if c.CountFactor > 0 {
		n = int(c.CountFactor * float64(n))
	}
	return n
}

// charTokens counts four UTF-16 code units as one token, as most harnesses do. If a provider has counted the beginning
// of the view, it uses that count for those messages.
func charTokens(v clip.View) int {
	n, from := plan.FixedTokens(v), 0
	if u := v.Usage; u != nil && u.PromptTokens > 0 {
		n, from = u.PromptTokens, u.Position+1
	}
	for _, m := range clip.Shown(v.Messages, v.Edits) {
		if m.Position >= from {
			n += (chars16(m) + 3) / 4
		}
	}
	return n
}

// imageChars are the characters that an image counts as.
const imageChars = 4_800

// chars16 returns a message's length in UTF-16 code units.
func chars16(m recall.Message) (n int) {
	for _, p := range m.Content {
		for _, text := range []string{p.Text, p.Name, p.Input} {
			n += units16(text)
		}
		n += imageChars * len(p.Images)
		if p.Type == recall.Image {
			n += imageChars
		}
	}
	return n
}

// turns returns the indexes of the user's messages.
func turns(messages []recall.Message) (at []int) {
	for i, m := range messages {
		if m.Role == recall.User {
			at = append(at, i)
		}
	}
	return at
}

// units16 returns a text's length in UTF-16 code units: two for a character that begins with a byte from 0xF0 on, one
// for any other.
func units16(text string) int {
	n := utf8.RuneCountInString(text)
	if n == len(text) {
		return n
	}
	for i := range len(text) {
		if text[i] >= 0xF0 {
			n++
		}
	}
	return n
}

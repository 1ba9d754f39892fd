package lexicon

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// compounding are the languages that write several words as one: Umsatzsteuervoranmeldung.
var compounding = func() (all Languages) {
	for _, code := range []string{"de", "nl", "sv", "da", "no", "fi", "hu"} {
		l, _ := LanguageNamed(code)
		all = all.add(l)
	}
	return all
}()

// Bounds of compound words.
const (
	leastPart     = 4 // letters of a part
	leastKnown    = 3 // letters of a part that is a word of the scope
	leastCompound = 8 // letters
	mostCompound  = 64
	mostCompounds = 50_000
	ofOneWord     = 12 // compounds that a word of a query finds
	mostTerms     = 56 // of a query with all of these; an index of words answers up to 64
)

// compoundShare is the weight of a compound word for a query that has one of its parts, relative to the part's weight.
const compoundShare = 0.5

// links join the parts of compound words.
var links = []string{"", "s", "es", "n", "en", "er", "e"}

// Compounds are the words of a scope that may have parts. It is immutable.
type Compounds struct {
	long  []longWord      // the most frequent first
	stems map[string]bool // stems of the words of the texts in compounding languages
}

// longWord is a word that may have parts, in lower case without diacritics.
type longWord struct {
	text   string
	stem   string // of its term
	in     Language
	number int // how often the texts have it
}

// HasCompounds reports whether a part of the sampled rows is in a language that writes several words as one.
func (f *IDF) HasCompounds() bool { return f.languages&compounding != 0 }

// NewCompounds returns the compound words of a scope's texts.
func NewCompounds(texts []string) *Compounds {
	type key struct {
		text string
		in   Language
	}
	numbers, seen := map[key]int{}, map[string]bool{}
	c := &Compounds{stems: map[string]bool{}}
	for _, text := range texts {
		text = compatible(text)
		in := spokenIn(text)
		if !in.in().has(compounding) {
			continue
		}
		eachWord(text, func(w word) {
			if w.at < 0 || len(w.text) < leastKnown || strings.ContainsAny(w.text, "0123456789") {
				return
			}
			t := lookup(w.text, in.Language)
			if t.Text == "" || functionWords[strings.ToLower(w.text)].has(compounding) {
				return
			}
			if !seen[w.text] {
				seen[w.text] = true
				for ; t != nil; t = t.also {
					c.stems[t.Text] = true
				}
			}
			if n := utf8.RuneCountInString(w.text); n >= leastCompound && n <= mostCompound {
				numbers[key{bare(strings.ToLower(w.text)), in.Language}]++
			}
		})
	}
	for k, n := range numbers {
		c.long = append(c.long, longWord{k.text, lookup(k.text, k.in).Text, k.in, n})
	}
	slices.SortFunc(c.long, func(a, b longWord) int {
		if a.number != b.number {
			return b.number - a.number
		}
		return strings.Compare(a.text, b.text)
	})
	c.long = c.long[:min(len(c.long), mostCompounds)]
	return c
}

// has reports whether both sets have a language in common.
func (s Languages) has(other Languages) bool { return s&other != 0 }

// with returns the terms of compound words that have a word as a part, and those of the word's own parts. There are at
// most ofOneWord.
func (c *Compounds) with(word string) (terms []*Term) {
	word = bare(strings.ToLower(word))
	if c == nil || utf8.RuneCountInString(word) < leastPart || stopwords[word] {
		return nil
	}
	var stems [len(languages)][]string
	add := func(t *Term) {
		same := func(o *Term) bool { return o.ID == t.ID }
		if t.Text != "" && len(terms) < ofOneWord && !slices.ContainsFunc(terms, same) {
			terms = append(terms, t)
		}
	}
	for _, long := range c.long {
		if len(terms) == ofOneWord {
			break
		}
		if stems[long.in] == nil {
			stems[long.in] = stemsIn(long.in, word)
		}
		if c.isPart(word, stems[long.in], long) {
			add(lookup(long.text, long.in))
		}
	}
	compounding.each(func(l Language) {
		for _, part := range c.partsOf(word, l) {
			add(lookup(part, l))
		}
	})
	return terms
}

// isPart reports whether a word, with the given stems, is a part of a longer word.
func (c *Compounds) isPart(word string, stems []string, long longWord) bool {
	if long.text == word || slices.Contains(stems, long.stem) {
		return false
	}
	for _, part := range append([]string{word}, stems...) {
		if len(part) < leastPart {
			continue
		}
		for from := 0; ; {
			i := strings.Index(long.text[from:], part)
			if i < 0 {
				break
			}
			from += i
			if c.splits(long, from, from+len(part), stems) {
				return true
			}
			from++
		}
	}
	return false
}

// splits reports whether a compound word has a part at text[from:to]: the word ends with it or with a form of it, or
// another part follows it; and it begins with it, or another part precedes it.
func (c *Compounds) splits(long longWord, from, to int, stems []string) bool {
	before, after := long.text[:from], long.text[to:]
	if before != "" && !c.endsPart(before, long.in, leastBeside(to-from)) {
		return false
	}
	if before != "" && (after == "" || sharesStem(stemsIn(long.in, long.text[from:]), stems)) {
		return true
	}
	return after != "" && c.beginsPart(after, long.in, leastBeside(to-from))
}

func sharesStem(a, b []string) bool {
	return slices.ContainsFunc(a, func(stem string) bool { return slices.Contains(b, stem) })
}

// endsPart reports whether what precedes a part is one or several parts, perhaps with a link. least is as for
// mayBePart.
func (c *Compounds) endsPart(before string, in Language, least int) bool {
	for _, link := range links {
		if rest, ok := strings.CutSuffix(before, link); ok && c.mayBePart(rest, in, least) {
			return true
		}
	}
	return false
}

// beginsPart reports whether what follows a part is one or several parts, perhaps after a link.
func (c *Compounds) beginsPart(after string, in Language, least int) bool {
	for _, link := range links {
		if rest, ok := strings.CutPrefix(after, link); ok && c.mayBePart(rest, in, least) {
			return true
		}
	}
	return false
}

// leastBeside returns the least letters beside a part of so many letters, if they are no word of the scope. Few letters
// may be anything: Rand in Brand. Beside a long part they are most likely a word: Lejekontrakt.
func leastBeside(part int) int {
	switch {
	case part >= 8:
		return leastKnown
	case part >= 6:
		return leastPart
	}
	return leastPart + 1
}

// mayBePart reports whether letters are a word of the scope, or may be one because they are not fewer than least.
func (c *Compounds) mayBePart(part string, in Language, least int) bool {
	return len(part) >= least && strings.ContainsAny(part, "aeiouy") || c.knows(part, in)
}

// knows reports whether letters are a word of the scope.
func (c *Compounds) knows(part string, in Language) bool {
	return len(part) >= leastKnown && slices.ContainsFunc(stemsIn(in, part), func(s string) bool { return c.stems[s] })
}

// partsOf returns the parts of a compound word that are words of the scope, if the rest may be parts, too.
func (c *Compounds) partsOf(word string, in Language) (parts []string) {
	for i := leastPart; i <= len(word)-leastPart; i++ {
		first, last := word[:i], word[i:]
		if c.knows(last, in) && c.endsPart(first, in, leastPart+1) {
			parts = append(parts, last)
		}
		if c.knows(first, in) && c.beginsPart(last, in, leastPart+1) {
			parts = append(parts, first)
		}
	}
	return parts
}

// compoundsOf returns the terms of compound words with a word of a query as a part, without the query's own terms.
func (c *Compounds) compoundsOf(words []queryWord) (all []alternative) {
	if c == nil {
		return nil
	}
	for _, w := range words {
		for _, t := range c.with(w[0].Word) {
			known := func(o *Term) bool { return o.ID == t.ID }
			if !slices.ContainsFunc(words, func(w queryWord) bool { return slices.ContainsFunc(w, known) }) {
				all = append(all, alternative{t, w[0]})
			}
		}
	}
	return all
}

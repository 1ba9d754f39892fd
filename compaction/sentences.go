package compaction

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// markup matches what Loci writes into what a model reads: the positions of messages, the notices of shortened results,
// ids to expand, and headers of summaries.
var markup = regexp.MustCompile(`\[(?:The first )?\d+ (?:of|more) [^\[\]]*?(?:bytes|characters)[^\[\]]*\]|` +
	`\[seq \d+(?:[–-]\d+)?\](?: Earlier messages do not fit[^\n]*)?|expand\(id=[^)]*\)|` +
	`\b(?:clip|message|conv)-[0-9a-f-]{36}\b|… \[\d+ more characters\]|` + regexp.QuoteMeta(clipSuffix))

// unmarked returns what a part says, without what Loci added to it.
func unmarked(text string) string { return markup.ReplaceAllString(clean(text), " ") }

// abbreviated matches a text that ends with an abbreviation, an initial or the number of a list, after which no
// sentence ends.
var abbreviated = regexp.MustCompile(`(?i)(?:^|[\s(])(?:[a-z]|dr|mr|mrs|ms|prof|st|e\.g|i\.e|etc|vs|no|nr|ca|` +
	`bzw|z\.b|u\.a|d\.h|str|` +
	`tel|approx|inc|ltd|co|fig|\d{1,2})\.$`)

// sentences splits a text into sentences, and joins those that only make sense with the one before.
func sentences(text string) []string {
	var all []string
	from := 0
	end := func(to int) {
		s := strings.Join(strings.Fields(text[from:to]), " ")
		from = to
		if s == "" {
			return
		}
		if n := len(all) - 1; n >= 0 && belongs(all[n], s) {
			all[n] += " " + s
			return
		}
		all = append(all, s)
	}
	for i, r := range text {
		next, _ := utf8.DecodeRuneInString(text[min(i+len(string(r)), len(text)):])
		switch {
		case r == '\n' && !unicode.IsLower(next), strings.ContainsRune("。！？", r):
			end(i + len(string(r)))
		case strings.ContainsRune(".!?", r) && unicode.IsSpace(next) && !abbreviated.MatchString(text[max(from, i-8):i+1]):
			end(i + 1)
		}
	}
	end(len(text))
	return all
}

// joinedChars is the most characters of a sentence with those that belong to it.
const joinedChars = 220

// continuing matches the beginning of a sentence that speaks of the one before.
var continuing = regexp.MustCompile(`^(?i:it|its|they|their|this|that|these|those|he|she|his|her|otherwise|so|` +
	`because|nobody|no|not|but|even|except|unless|which|there|i asked|and|or|also not)\b`)

// belongs reports whether a sentence belongs to the one before.
func belongs(before, s string) bool {
	if len(before)+len(s) > joinedChars {
		return false
	}
	return continuing.MatchString(s) || len(before) < 20 || strings.HasSuffix(before, ":") ||
		strings.HasSuffix(before, "?") && !strings.HasSuffix(s, "?") && pending.in(spacedOf(s))
}

// wholeSentences returns the text if it fits, else its first sentences that do and an ellipsis; empty if not even one
// fits.
func wholeSentences(text string, fits func(string) bool) string {
	if fits(text) {
		return text
	}
	shown := ""
	for _, s := range sentences(text) {
		if longer := strings.TrimSpace(shown + " " + s); fits(longer + " …") {
			shown = longer
			continue
		}
		break
	}
	if shown == "" {
		return ""
	}
	return shown + " …"
}

package compaction

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/loci-memory/loci/recall/chat"
	"github.com/loci-memory/loci/recall/tokens"
)

// markup matches what Loci writes into what a model reads: the positions of messages, the notices of shortened results,
// ids to expand, and headers of summaries.
var markup = regexp.MustCompile(chat.Notice + `|` +
	`\[seq \d+(?:[–-]\d+)?\](?: Earlier messages do not fit[^\n]*)?|expand\(id=[^)]*\)|` +
	`\b(?:clip|message|conv)-[0-9a-f-]{36}\b|… \[\d+ more characters\]|` + regexp.QuoteMeta(clipSuffix))

// unmarked returns what a part says, without what Loci added to it.
func unmarked(text string) string {
	text = clean(text)
	for _, begin := range []string{"[", "expand(id=", "clip-", "message-", "conv-"} { // of all markup
		if strings.Contains(text, begin) {
			return markup.ReplaceAllString(text, " ")
		}
	}
	return text
}

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
		switch r {
		case '。', '！', '？':
			end(i + utf8.RuneLen(r))
		case '\n', '.', '!', '?':
			next, _ := utf8.DecodeRuneInString(text[i+1:])
			if r == '\n' && !unicode.IsLower(next) ||
				r != '\n' && unicode.IsSpace(next) && !abbreviated.MatchString(text[max(from, i-8):i+1]) {
				end(i + 1)
			}
		}
	}
	end(len(text))
	return all
}

// joinedChars is the most characters of a sentence with those that belong to it.
const joinedChars = 220

// continuing are the first words of a sentence that speaks of the one before.
var continuing = func() *lexicon {
	l := newLexicon()
	l.add(1, "it, its, they, their, this, that, these, those, he, she, his, her, otherwise, so, because, nobody, no, "+
		"not, but, even, except, unless, which, there, i asked, and, or, also not")
	return l
}()

// belongs reports whether a sentence belongs to the one before.
func belongs(before, s string) bool {
	if len(before)+len(s) > joinedChars {
		return false
	}
	return len(before) < 20 || strings.HasSuffix(before, ":") ||
		continuing.opening(spacedOf(tokens.PrefixChars(s, 40)), nil) != 0 ||
		strings.HasSuffix(before, "?") && !strings.HasSuffix(s, "?") && sentenceOf(s).is(pending)
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

package prose

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/loci-memory/loci/chunker/frame"
	"github.com/loci-memory/loci/recall/tokens"
)

// markup matches what Loci adds to texts for a model: positions of messages, notices of shortened results, ids to
// expand, and headers of summaries.
var markup = regexp.MustCompile(frame.Notice + `|` +
	`\[seq \d+(?:[–-]\d+)?\](?: Earlier messages do not fit[^\n]*)?|expand\(id=[^)]*\)|` +
	`\b(?:clip|message|conv)-[0-9a-f-]{36}\b|… \[\d+ more characters\]|` + regexp.QuoteMeta(ClipSuffix))

// Unmarked returns a part's text without what Loci added.
func Unmarked(text string) string {
	text = Clean(text)
	for _, begin := range []string{"[", "expand(id=", "clip-", "message-", "conv-"} { // the beginnings of all markup
		if strings.Contains(text, begin) {
			return markup.ReplaceAllString(text, " ")
		}
	}
	return text
}

// abbreviations match a word before a full stop that ends no sentence: an initial, the number of a list item, a dotted
// or a common abbreviation. numberings match words where the full stop ends no sentence if a word with a digit follows.
var (
	abbreviations = regexp.MustCompile(`^(?i:\pL|\d{1,2}|\d*\pL{1,2}(?:\.\pL{1,2})+|` +
		`dr|mr|mrs|ms|messrs|prof|st|ste|mt|ft|jr|sr|lt|capt|sgt|gov|etc|vs|nr|ca|bzw|str|tel|approx|inc|ltd|co|corp|` +
		`fig|dept|ave|blvd|hr|fr|usw|inkl|evtl|ggf|vgl)$`)
	numberings = regexp.MustCompile(`^(?i:no|nos|vol|pp|ch|chap|sec|art|abs|eq|ver|ext|min|max|` +
		`jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec)$`)
)

// EndsAt reports whether a full stop between before and after ends a sentence. If in doubt it does not, because a fact
// that is cut in two is lost.
func EndsAt(before, after string) bool {
	word := before[strings.LastIndexFunc(before, unicode.IsSpace)+1:]
	after = strings.TrimLeftFunc(after, unicode.IsSpace)
	if strings.HasSuffix(word, "..") || strings.HasSuffix(word, "…") {
		next, _ := utf8.DecodeRuneInString(after)
		return !unicode.IsLower(next)
	}
	word = strings.TrimLeftFunc(word, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	if i := strings.IndexFunc(after, unicode.IsSpace); i >= 0 {
		after = after[:i]
	}
	return !abbreviations.MatchString(word) &&
		(!numberings.MatchString(word) || !strings.ContainsAny(after, "0123456789"))
}

// Sentences splits a text into sentences. A sentence that only makes sense together with the one before is joined to
// it.
func Sentences(text string) []string {
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
		case '。', '！', '？', '।', '۔', '؟':
			end(i + utf8.RuneLen(r))
		case '\n', '.', '!', '?':
			next, _ := utf8.DecodeRuneInString(text[i+1:])
			if r == '\n' && !unicode.IsLower(next) ||
				r != '\n' && unicode.IsSpace(next) && (r != '.' || EndsAt(text[from:i], text[i+1:])) {
				end(i + 1)
			}
		}
	}
	end(len(text))
	return all
}

// joinedChars is the most characters of joined sentences.
const joinedChars = 220

// continuing are first words of sentences that refer to the sentence before.
var continuing = func() *lexicon {
	l := newLexicon()
	l.add(1, "it, its, they, their, this, that, these, those, he, she, his, her, otherwise, so, because, nobody, no, "+
		"not, but, even, except, unless, which, there, i asked, also not")
	return l
}()

// adding are first words that join a short sentence to the one before. A long one stands alone.
var adding = func() *lexicon {
	l := newLexicon()
	l.add(1, "and, or")
	return l
}()

// addingChars is the most characters of a short sentence.
const addingChars = 60

// belongs reports whether sentence s belongs to the one before. A question never belongs to a statement, because a
// statement that ends with a question counts less; nor does a sentence that hardly says a word.
func belongs(before, s string) bool {
	if len(before)+len(s) > joinedChars || isQuestion(s) && isStatement(before) || wantsNone(s) {
		return false
	}
	if namesNext(before) || isStatement(before) && SentenceOf(s).IsBare() && !strings.ContainsAny(s, "0123456789") {
		return false
	}
	if said := SentenceOf(s); said.Is(Correcting) && said.hasValue() {
		return false
	}
	if len(s) > addingChars && SentenceOf(s).Is(Pending) && !strings.HasSuffix(before, "?") {
		return false // "it is not clear whether …" says enough alone
	}
	return len(before) < 20 && !isAside(before) || strings.HasSuffix(before, ":") ||
		continuing.opening(SpacedOf(tokens.PrefixChars(s, 40)), nil) != 0 ||
		len(s) <= addingChars && adding.opening(SpacedOf(s), nil) != 0 ||
		strings.HasSuffix(before, "?") && !strings.HasSuffix(s, "?") && SentenceOf(s).Is(Pending)
}

// namesNext reports whether a sentence only names what is next to be looked at.
func namesNext(s string) bool {
	for range eachIdentifier(s) {
		return SentenceOf(s).IsBare()
	}
	return false
}

// isAside reports whether a sentence only answers, or only asks for the next step: it does not begin another.
func isAside(s string) bool {
	t := SpacedOf(s)
	return isStatement(s) && (openings.opening(t, fillers)&Asking != 0 ||
		!slices.ContainsFunc(t.Words, func(w string) bool { return !fillers[w] }))
}

// isQuestion reports whether a text is a question. A statement that asks for consent at its end is none.
func isQuestion(s string) bool {
	return (strings.HasSuffix(s, "?") || strings.HasSuffix(s, "？")) && !consent.MatchString(s[max(len(s)-maxConsent, 0):])
}

// consent matches the end of a statement that asks for consent.
var consent = regexp.MustCompile(`(?i)(?:, ?(?:okay|ok|please|all ?right|understood|got it|will you|would you|ja|` +
	`bitte|oder|d['’]accord|vale|por favor|va bene|tá|хорошо|ладно)|好吗|好不好)[?？]$`)

// maxConsent is how many bytes of a text's end are looked at.
const maxConsent = 24

// Asks reports whether a sentence is a question.
func (s Sentence) Asks() bool { return isQuestion(s.Text) }

func isStatement(s string) bool {
	return slices.ContainsFunc([]string{".", "!", "。", "！"}, func(end string) bool { return strings.HasSuffix(s, end) })
}

// WholeSentences returns a text if it fits. Otherwise it returns the first sentences that fit, and an ellipsis; empty
// if not even one fits.
func WholeSentences(text string, fits func(string) bool) string {
	if fits(text) {
		return text
	}
	shown := ""
	for _, s := range Sentences(text) {
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

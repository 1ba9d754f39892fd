package prose

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// lexicon maps words and phrases to kinds of sentences that they are a sign of. Each kind is a bit.
type lexicon struct {
	words   map[string]uint32
	stems   map[string][]phrase // by their first stemKey bytes: words that begin with one are a sign
	phrases map[string][]phrase // by their first words
	dense   []phrase            // texts that are found within words
}

// stemKey is how many bytes a stem has at least.
const stemKey = 4

// phrase is a sign of some kinds. For a phrase of words, text is all words after the first, between spaces.
type phrase struct {
	text  string
	kinds uint32
}

func (l *lexicon) add(kinds uint32, list string) {
	for entry := range strings.SplitSeq(list, ", ") {
		first, rest, more := strings.Cut(entry, " ")
		stem, isStem := strings.CutSuffix(entry, "*")
		switch {
		case strings.ContainsFunc(entry, unspaced):
			l.dense = append(l.dense, phrase{entry, kinds})
		case more && isStem:
			l.phrases[first] = append(l.phrases[first], phrase{" " + strings.TrimSuffix(rest, "*"), kinds})
		case more:
			l.phrases[first] = append(l.phrases[first], phrase{" " + rest + " ", kinds})
		case isStem:
			l.stems[stem[:stemKey]] = append(l.stems[stem[:stemKey]], phrase{stem, kinds})
		default:
			l.words[entry] |= kinds
		}
	}
}

// kindsOf returns the kinds that a text has signs of.
func (l *lexicon) kindsOf(t spaced) (kinds uint32) {
	end := 0
	for _, w := range t.Words {
		end += len(" ") + len(w)
		kinds |= l.kindsAt(w, t.Text[end:])
		if word, ok := strings.CutPrefix(w, arabicAnd); ok {
			kinds |= l.kindsAt(word, t.Text[end:])
		}
	}
	return kinds | l.anywhere(t)
}

// arabicAnd is written together with the word behind it.
const arabicAnd = "و"

// anywhere returns the kinds of the signs that are found within words.
func (l *lexicon) anywhere(t spaced) (kinds uint32) {
	if strings.ContainsFunc(t.Text, unspaced) {
		for _, p := range l.dense {
			if strings.Contains(t.Text, p.text) {
				kinds |= p.kinds
			}
		}
	}
	return kinds
}

// unspaced reports whether a character belongs to a script where signs are found within words.
func unspaced(r rune) bool { return Dense(r) || unicode.Is(unicode.Hangul, r) }

// kindsAt returns the kinds of a word, and of the phrases that begin with it. after is the text behind the word.
func (l *lexicon) kindsAt(word, after string) uint32 {
	kinds := l.words[word]
	if len(word) >= stemKey {
		for _, p := range l.stems[word[:stemKey]] {
			if strings.HasPrefix(word, p.text) {
				kinds |= p.kinds
			}
		}
	}
	for _, p := range l.phrases[word] {
		if strings.HasPrefix(after, p.text) {
			kinds |= p.kinds
		}
	}
	return kinds
}

// opening returns the kinds at the beginning of a text, and those of signs within words. It skips fillers that are no
// sign.
func (l *lexicon) opening(t spaced, fillers map[string]bool) uint32 {
	end := 0
	for _, w := range t.Words {
		end += len(" ") + len(w)
		if kinds := l.kindsAt(w, t.Text[end:]); kinds != 0 || !fillers[w] {
			return kinds | l.anywhere(t)
		}
	}
	return l.anywhere(t)
}

func newLexicon() *lexicon {
	return &lexicon{words: map[string]uint32{}, stems: map[string][]phrase{}, phrases: map[string][]phrase{}}
}

// lexiconOf returns the lexicon of the lists that of and everydayOf pick from each language.
func lexiconOf(of func(language) map[uint32]string, everydayOf func(everyday) map[uint32]string) *lexicon {
	lex := newLexicon()
	addAll := func(lists map[uint32]string) {
		for kinds, list := range lists {
			if list != "" {
				lex.add(kinds, list)
			}
		}
	}
	for _, l := range languages {
		addAll(of(l))
	}
	for _, w := range everydayWords {
		addAll(everydayOf(w))
	}
	return lex
}

// Kinds of signs.
const (
	Obliging uint32 = 1 << iota
	Wishing
	Owning
	dating
	Deciding
	explaining
	finding
	Pending
	Noting
	relating
	denying
	counting
	failing
	Correcting
	Standing    // a rule that holds from now on
	leaving     // what remains to be done
	bounding    // until when, before what or without what
	Contrasting // a correction only by its words for "not" and its numbers
	courteous
)

// weights are how much the kinds count.
var weights = []struct {
	kind   uint32
	weight float64
}{
	{Obliging, 2}, {Standing, 2}, {Wishing, 1.6}, {Owning, 0.8}, {dating, 1.5}, {Deciding, 2}, {explaining, 1},
	{finding, 1.8}, {Pending, 2.4}, {Noting, 1.5}, {relating, 1}, {Correcting, 1.5}, {denying, 0.6}, {counting, 0.8},
	{failing, 0.6},
}

// Kinds of sentence beginnings: requests for the next step, announcements of it, and introductions.
const (
	Asking = 1 << iota
	announcing
	Introducing // of oneself
)

// cueLexicon, openings and fillers hold the signs of all languages.
var (
	cueLexicon = lexiconOf(func(l language) map[uint32]string {
		return map[uint32]string{Obliging | Standing: l.rules, Obliging: l.duties, Wishing | Standing: l.replies,
			Wishing: l.wishes, Owning: l.owning, dating: l.dates, Deciding: l.decisions, explaining: l.reasons,
			finding: l.findings, Pending: l.pending, Noting: l.notes, relating: l.relating, Correcting: l.changes,
			denying: l.denials, counting: l.numbers, leaving: l.left, failing: l.failures}
	}, func(w everyday) map[uint32]string {
		return map[uint32]string{dating: w.dates, bounding: w.bounds, courteous: w.courtesies}
	})
	openings = lexiconOf(func(l language) map[uint32]string {
		return map[uint32]string{Asking: l.asking, announcing: l.announcing, Introducing: l.introducing}
	}, func(everyday) map[uint32]string { return nil })
	fillers = func() map[string]bool {
		var all []string
		for _, l := range languages {
			all = append(all, l.fillers)
		}
		return setOf(strings.Join(all, " "))
	}()

	// Quantity matches a time, or an amount together with what it counts. A bare number does not match.
	Quantity = regexp.MustCompile(`(?i)\d[:.]\d\d\b|\d{4}-\d\d|[$€£¥]\s?\d|\d\s?[$€£¥%°]|\d[\d.,'’]*[\s-]?\pL`)
)

// empty matches words that are no sign of anything where they stand: what forbids nothing, what calls nobody anything,
// and what has not been found.
var empty = regexp.MustCompile(`(?i)\bnever mind\b|\bgood (?:morning|afternoon|evening|night)\b|` +
	`\b(?:is|are|was|were|gets?|being) called (?:from|by|in|on|at|with|for|once|twice|again|when|here|there)\b`)

// progress matches how much of something is done. In a script without spaces the whole comes first.
var progress = regexp.MustCompile(`(?i)\b\d+\s*(?:\pL+ ){0,2}(?:/|of|out of|von|de|sur|di|su|из|van|z|ze)\s*` +
	`(?:the |den |der |las |los |les |dei |delle |das |dos )?\d+\b|\d\s?% (?:done|of)\b|` +
	`\d+\s?\pL{0,4}(?:のうち|中|里|의|에서| में से|'(?:in|ın|un|ün|nin|nın|den|dan))[^\d]{0,12}\d|` +
	`\b` + few + `\s+(?:out )?of\s+(?:the\s+)?` + few + `\b`)

// wholeNumber matches a number without a point.
var wholeNumber = regexp.MustCompile(`\b\d{1,3}(?:[,.]\d{3})*\b`)

// addsUp reports whether a number in a text is the sum of two others, as what is done and what is left are of all.
func addsUp(text string) bool {
	var all []int
	for _, found := range wholeNumber.FindAllString(text, maxSummands+1) {
		n, err := strconv.Atoi(strings.NewReplacer(",", "", ".", "").Replace(found))
		if err == nil && n > 0 {
			all = append(all, n)
		}
	}
	if len(all) < 3 || len(all) > maxSummands {
		return false
	}
	slices.Sort(all)
	for i, sum := range all {
		for j := range i {
			if k, found := slices.BinarySearch(all[:j], sum-all[j]); found && k < j {
				return true
			}
		}
	}
	return false
}

// maxSummands is the most numbers of a text that are added.
const maxSummands = 6

// few matches a small number in words.
const few = `(?:two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|fifteen|twenty|thirty|forty|fifty)`

// undecided matches what makes a question one about what people will do, rather than one that asks for something now.
var undecided = regexp.MustCompile(`(?i)\bwho (?:will|is going to|owns|would|should|decides|pays|signs|takes)\b|` +
	`\bwhat (?:do|should|shall|would|will) we\b|\b(?:should|shall|must) we\b|` +
	`\bdo we (?:still|ever|want|need|have to)\b|\bare we (?:going|still|allowed)\b|` +
	`\b(?:when|where|how) (?:will|should|shall|do|would) we\b|\bwhen will\b|` +
	`\bwhat (?:if|happens\b.*\b(?:if|when|once))\b|\bwer (?:wird|soll|zahlt|übernimmt|macht|entscheidet|darf)\b|` +
	`\bwas (?:machen|tun) wir\b|\b(?:sollen|wollen|müssen) wir\b|\bwas passiert, wenn\b|` +
	`\bqui (?:va|doit|paie|signe|décide)\b|\bque (?:fait-on|faisons-nous)\b|\b(?:faut-il|devons-nous|doit-on)\b|` +
	`\bquién (?:va a|paga|firma|decide|debe)\b|` +
	`\bqué (?:hacemos|pasa si)\b|\b(?:debemos|deberíamos)\b|\bchi (?:paga|firma|decide|deve)\b|\bcosa facciamo\b|` +
	`\bdobbiamo\b|\bquem (?:vai|paga|assina|decide)\b|\bo que fazemos\b|кто (?:будет|возьм|плат|реш|долж)|что делать|` +
	`(?:нужно|стоит) ли|谁(?:来|负责|会|要|去)|怎么办|要不要|该不该|誰が|どうする|どうします|べきです?か|누가|어떻게 하|해야 할까|ماذا نفعل|هل (?:يجب|نحتاج)`)

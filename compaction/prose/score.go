package prose

import (
	"math"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// spaced is a lower-case text with single spaces between words, and no signs but apostrophes.
type spaced struct {
	Text  string
	Words []string
}

// SpacedOf returns the words of a text in lower case, with single spaces around them.
func SpacedOf(text string) spaced {
	words := strings.Fields(strings.Map(func(r rune) rune {
		switch {
		case r == '’':
			return '\''
		case r == '\'' || unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r):
			return unicode.ToLower(r)
		}
		return ' '
	}, text))
	return spaced{" " + strings.Join(words, " ") + " ", words}
}

// Sentence is a text with the kinds of its signs, and the kinds of its beginning.
type Sentence struct {
	Text           string
	kinds, Opening uint32
}

// SentenceOf returns a text with its kinds.
func SentenceOf(text string) Sentence {
	t := SpacedOf(text)
	has := hintsOf(t)
	if has&hintEmpty != 0 {
		t = SpacedOf(empty.ReplaceAllString(text, ""))
	}
	s := Sentence{text, cueLexicon.kindsOf(t), openings.opening(t, fillers)}
	if isQuestion(text) && undecided.MatchString(text) {
		s.kinds |= Pending
	}
	if !isQuestion(text) && has&hintWhether != 0 && whether.MatchString(text) {
		s.kinds |= Pending
	}
	if wantsNone(text) || has&hintNever != 0 && neverDo.MatchString(text) ||
		!isQuestion(text) && s.Is(denying) && s.Is(bounding) {
		s.kinds |= Obliging | Standing // "it is not opened before …" forbids, too
	}
	if !isQuestion(text) && has&hintForm != 0 && asksForForm.MatchString(text) {
		s.kinds |= Wishing | Standing
	}
	if !isQuestion(text) && has&hintKeep != 0 && keepsWithin.MatchString(text) {
		s.kinds |= Obliging | Standing
	}
	if !isQuestion(text) && has&hintPromise != 0 && promise.MatchString(text) && Detail(text) >= detailOfPlan {
		s.kinds |= Pending
	}
	switch {
	case s.Is(Correcting) || isQuestion(text) || !s.Is(denying):
	case saysNo.MatchString(text):
		s.kinds |= Correcting
	case numbersIn(text) > 1: // "at 7, not at 6"
		s.kinds |= Correcting | Contrasting
	}
	return s
}

// Hints are words without which an expression below matches nothing. They are looked up first, because the expressions
// take long.
const (
	hintEmpty uint8 = 1 << iota
	hintWhether
	hintNever
	hintForm
	hintKeep
	hintPromise
)

var hints = map[string]uint8{"mind": hintEmpty, "good": hintEmpty, "called": hintEmpty, "whether": hintWhether,
	"ob": hintWhether, "ли": hintWhether, "ما": hintWhether, "ne": hintNever, "non": hintNever, "nie": hintNever,
	"не": hintNever, "لا": hintNever, "send": hintForm, "give": hintForm, "write": hintForm, "show": hintForm,
	"text": hintForm, "mail": hintForm, "keep": hintKeep, "leave": hintKeep, "once": hintPromise, "soon": hintPromise,
	"before": hintPromise, "until": hintPromise, "after": hintPromise, "sobald": hintPromise, "bevor": hintPromise,
	"nachdem": hintPromise, "dès": hintPromise, "avant": hintPromise, "antes": hintPromise, "cuando": hintPromise,
	"zodra": hintPromise, "voordat": hintPromise}

// hintsOf returns the hints in a text.
func hintsOf(t spaced) (has uint8) {
	for _, w := range t.Words {
		has |= hints[w]
		if strings.HasPrefix(w, "n'") || len(w) > len("mayin") && turkishDenial(w) {
			has |= hintNever
		}
		if w[0] >= utf8.RuneSelf && strings.ContainsFunc(w, unspaced) { // a text of several words
			has |= hintWhether | hintNever
		}
	}
	return has
}

// turkishDenial reports whether a word has an ending by which Turkish forbids.
func turkishDenial(word string) bool {
	return strings.Contains(word, "may") || strings.Contains(word, "mey")
}

// neverDo matches a verb in the form in which languages forbid something: French, Italian, Polish, Russian and Arabic.
var neverDo = regexp.MustCompile(`(?i)(?:^|[.,;:!] ?)n(?:e |['’])\pL+ (?:pas|jamais|rien|plus)\b|` +
	`\bnon (?:l[oiea] )?\pL+(?:are|ere|ire)(?:\P{L}|$)|\bnie \pL+(?:[aeuiy]j|[aeuiy]jcie)(?:\P{L}|$)|` +
	`(?:^|\s)не \pL+(?:й|йте|ите|ьте|ать|ять|еть|ить|уть|ыть|ти|чь)(?:\P{L}|$)|(?:^|\s)لا ت\pL+|` +
	`(?:^|[^特分区级类个性识差告离派辨])别[^的人处名墅致针说扭]|\pL{3,}m[ae]y[ıi]n(?:[ıi]z)?(?:\P{L}|$)`)

// saysNo matches the beginning of a statement that contradicts.
var saysNo = regexp.MustCompile(`(?i)^(?:(?:no|nein|non|nee|não|nie|нет|hayır|ไม่ใช่|لا|नहीं)[,،]|` +
	`いいえ|いや|違います|不对|不是|아니).{8,}`)

// asksForForm matches a request for the form of what the user is sent, and keepsWithin one to keep something within
// bounds.
var (
	asksForForm = regexp.MustCompile(`(?i)\b(?:send|give|write|show|text|mail) (?:me|us|it|them|everything|all)\b.* ` +
		`(?:as|in) (?:an? |the )?\p{Lu}\w+`)
	keepsWithin = regexp.MustCompile(`(?i)\bleave\b.{1,40}\bout of (?:this|that|it)\b|` +
		`\bkeep\b.{1,40}\b(?:under|below|within|above|out of|away from|to at most)\b`)
)

// numbersIn counts the numbers in a text, in digits, Chinese numerals, or words.
func numbersIn(text string) int {
	n := len(number.FindAllString(text, -1))
	for _, w := range SpacedOf(text).Words {
		if cueLexicon.words[w]&counting != 0 {
			n++
		}
	}
	return n
}

var number = regexp.MustCompile(`\p{Nd}+(?:[.,:]\p{Nd}+)*|[一二两三四五六七八九十百千]+`)

// hasValue reports whether a sentence has a number, a date or a name.
func (s Sentence) hasValue() bool {
	return s.Is(dating) || numbersIn(s.Text) > 0 || hasProperName(s.Text)
}

// Dates returns what a text says of days of the week, months and times of the day, in lower case.
func Dates(text string) (all []string) {
	t := SpacedOf(text)
	for _, w := range t.Words {
		if cueLexicon.words[w]&dating != 0 {
			all = append(all, w)
		}
	}
	for _, p := range cueLexicon.dense {
		if p.kinds&dating != 0 && strings.Contains(t.Text, p.text) {
			all = append(all, p.text)
		}
	}
	return all
}

// lasting are kinds of sentences that hold beyond the next answer.
const lasting = Obliging | Standing | Wishing | Deciding | Pending | Correcting | Noting | relating | dating

// IsBare reports whether a sentence only names what is next to be looked at: besides identifiers it has hardly a word.
func (s Sentence) IsBare() bool {
	if s.Is(lasting | denying) {
		return false
	}
	rest := s.Text
	for id := range eachIdentifier(s.Text) {
		rest = strings.Replace(rest, id, " ", 1)
	}
	if !isQuestion(s.Text) && s.Opening&Asking == 0 && copula.MatchString(rest) {
		return false
	}
	letters := 0
	for _, r := range rest {
		if Dense(r) {
			letters++
		}
	}
	if letters > 0 {
		return s.Opening&Asking != 0 && letters <= bareLetters
	}
	return len(ContentWords(rest)) < 2
}

// copula matches what says of something where or what it is.
var copula = regexp.MustCompile(`(?i)\pL{3,} (?:is|are|lives?|ist|sind|liegt|est|sont|está|están|é|è|staat)(?: |$)`)

// bareLetters is how many characters a bare sentence has in a script without spaces.
const bareLetters = 8

// whether matches what begins an indirect question in a statement.
var whether = regexp.MustCompile(`(?i)\bwhether\b|, ob\b|[\s,]ли[\s,.]|是否|かどうか|여부|ما إذا|หรือไม่`)

// noSuch matches the beginning of a sentence that may want none of something.
var noSuch = regexp.MustCompile(`(?i)^(?:(?:please|and|also|but|so),? )?` +
	`(?:no|keine?n?|pas de|ningun[ao]?|nessun[ao]?) (?:more )?(\pL{3,})`)

// saidOfNone are nouns behind a no that forbids nothing.
var saidOfNone = setOf("problem problems idea need worries doubt way clue rush matter thanks longer one wonder issue " +
	"issues error errors change changes news reply answer word sign trace luck hurry chance difference ahnung problème " +
	"idée prisa")

// wantsNone reports whether a sentence forbids something by beginning with a no.
func wantsNone(text string) bool {
	found := noSuch.FindStringSubmatch(text)
	return found != nil && !saidOfNone[strings.ToLower(found[1])] && !isQuestion(text)
}

// Is reports whether a sentence is of a kind.
func (s Sentence) Is(kind uint32) bool { return s.kinds&kind != 0 }

// CueScore returns how likely it is that a sentence will matter later, judged only by its words.
func (s Sentence) CueScore() float64 {
	score := 0.3
	for _, c := range weights {
		if s.Is(c.kind) {
			score += c.weight
		}
	}
	if strings.ContainsAny(s.Text, "0123456789") && Quantity.MatchString(s.Text) {
		score += 1.6
	}
	if hasProperName(s.Text) {
		score++
	}
	counts := strings.ContainsFunc(s.Text, unicode.IsDigit)
	if (counts || strings.Contains(s.Text, " of ")) && progress.MatchString(s.Text) || counts && addsUp(s.Text) ||
		s.Is(leaving) && numbersIn(s.Text) > 1 {
		score += progressWeight
	}
	for range eachIdentifier(s.Text) {
		score += 0.5
		break
	}
	score += Detail(s.Text)
	switch {
	case s.IsUnread() && !hasCues(s.Text):
		score += unreadWeight // whatever its beginning
	case s.Opening&announcing != 0 && !commits(s.Text):
		score *= 0.4
	case s.Is(courteous) && !s.Is(lasting) && !strings.ContainsAny(s.Text, "0123456789") && !commits(s.Text):
		score *= courtesyShare
	case s.Opening&Asking != 0 && !s.Is(Pending|Standing) && // "please never …" asks for nothing now
		(!s.IsUnread() || !s.Is(Wishing|Obliging|Deciding)): // found anywhere in the sentence
		score *= 0.5
	case s.Opening&Introducing != 0:
		score++
	}
	return score
}

// commits reports whether a sentence says how something will be done from now on, rather than what comes next.
func commits(text string) bool {
	return intention.MatchString(text) && !looking.MatchString(text) && Detail(text) >= detailOfPlan
}

// intention matches the beginning of a sentence, perhaps behind a short one, that says what its speaker will do.
// looking matches what is done by the next answer.
var (
	intention = regexp.MustCompile(intends + `\b`)
	looking   = regexp.MustCompile(`(?i)\b(?:(?:look|check|read|open|see|find|search|list|view|start|begin|continu|` +
		`inspect|verif|prüf|les[en]|öffn|such|schau|zeig|regard|cherch|ouvr|` +
		`lire|busc|mir|revis|abr|leer|ver|procur|kijk|lees|` +
		`zoek)\pL*|let you|get back|go (?:on|through|over)|have a|run|try|tell|show)\b`)
)

const intends = `(?i)(?:^|[.!] )(?:(?:ok|okay|good|fine|so|then|next|gut|dann|bon|bien|vale|bem|goed),? )?` +
	`(?:i['’]ll|i will|i['’]m going to|i am going to|ich werde|je vais|voy a|vou|ik ga)`

// promise matches what its speaker will do once something has happened, or what waits until then.
var promise = regexp.MustCompile(intends + ` (?:\pL+ ){0,2}?(?:send|wait|hold|tell|inform|notify|report|` +
	`remove|delete|drop|switch|enable|disable|publish|release|deploy|migrate|restart|rotate|merge|ask|call|write|mail|` +
	`warte|attend|envoy|esper|envi|wacht|stuur)\pL*\b.*\b(?:once|as soon as|before|until|after|dès que|avant|` +
	`antes|cuando|zodra|voordat)\b|` + intends + ` .*\b(?:senden|schicken|warten|melden|löschen|fragen)\b,? ` +
	`(?:sobald|bevor|nachdem|bis)\b`)

// detailOfPlan is the Detail of a sentence that says enough of a plan.
const detailOfPlan = 0.6

// Weights of kinds that are recognized without cues: progress, and statements in scripts without cues.
const (
	progressWeight = 2.8
	unreadWeight   = 3.5
	courtesyShare  = 0.3
)

// cued are the scripts besides Latin of the languages that have cues.
var cued = []*unicode.RangeTable{unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul, unicode.Thai,
	unicode.Arabic, unicode.Devanagari, unicode.Cyrillic}

// hasCues reports whether there are cues for the scripts of a text.
func hasCues(text string) bool {
	for _, r := range text {
		if unicode.IsLetter(r) && !unicode.In(r, unicode.Latin, unicode.Common) && !unicode.In(r, cued...) {
			return false
		}
	}
	return true
}

// Detail returns what a sentence counts more for the words that it has above a few. Chatter is short.
func Detail(text string) float64 {
	words, dense := 0.0, 0
	for _, w := range SpacedOf(text).Words {
		if !strings.ContainsFunc(w, Dense) {
			words++
			continue
		}
		for _, r := range w {
			if Dense(r) {
				dense++
			}
		}
	}
	if words += float64(dense) / charsOfWord; words > fewWords && strings.ContainsFunc(text, caseless) {
		words += wordsOfName // a name would have a capital letter
	}
	return min(max(words-fewWords, 0)*detailOfWord, mostDetail)
}

// Limits of Detail.
const (
	fewWords     = 5
	detailOfWord = 0.15
	mostDetail   = 1.2
	charsOfWord  = 2 // of a script without spaces
	wordsOfName  = 6
)

// caseless reports whether a character belongs to a script without capital letters.
func caseless(r rune) bool { return unicode.IsLetter(r) && unicode.Is(unicode.Lo, r) }

// IsUnread reports whether a sentence is a statement in a script for which there are hardly any cues. Words of other
// scripts may stand beside it.
func (s Sentence) IsUnread() bool {
	latin, other := 0, 0
	lastIsOther := false
	for _, r := range s.Text {
		if unicode.IsLetter(r) {
			if lastIsOther = !unicode.Is(unicode.Latin, r); lastIsOther {
				other++
			} else {
				latin++
			}
		}
	}
	asks := lastIsOther && strings.ContainsAny(s.Text[max(len(s.Text)-len("？"), 0):], "?？؟")
	return !asks && (other > latin/4 && other >= 6 || other >= 12)
}

// hasProperName reports whether a text has a name within a sentence: a capital letter, followed by more letters, after
// a space that does not follow the end of a sentence.
func hasProperName(text string) bool {
	var r [3]rune // the last three characters
	for _, next := range text {
		if r[1] == ' ' && unicode.IsUpper(r[2]) && (unicode.IsLower(next) || strings.ContainsRune("'’-", next)) &&
			(unicode.IsLetter(r[0]) || r[0] >= '0' && r[0] <= '9' || strings.ContainsRune(",;:'’\")", r[0])) {
			return true
		}
		r = [3]rune{r[1], r[2], next}
	}
	return false
}

// Frequency counts for each word the lines that contain it.
type Frequency struct {
	lines int
	Of    map[string]int
}

// Note counts the words of a line.
func (f *Frequency) Note(words []string) {
	f.lines++
	for _, w := range words {
		f.Of[w]++
	}
}

// Novelty returns how rare a line's words are, from 0 to 1. Chatter repeats its words, even if its numbers differ.
func (f *Frequency) Novelty(words []string) float64 {
	if len(words) == 0 {
		return 0.3
	}
	sum := 0.0
	most := math.Log(float64(f.lines + 2))
	for _, w := range words {
		sum += math.Log(float64(f.lines+2)/float64(max(f.Of[w], 1))) / most
	}
	return sum / float64(len(words))
}

// StemChars is how many characters of a word are compared; maxContentWords is how many words of a text.
const (
	StemChars       = 6
	maxContentWords = 2_000
)

// ContentWords returns the beginnings of the words that carry a text's meaning, sorted, each once. Numbers and the
// shortest words are left out. In a script without spaces they are pairs of characters.
func ContentWords(text string) []string {
	all := []string{}
	for _, w := range Keywords(text, maxContentWords) {
		if strings.ContainsFunc(w, unicode.IsLetter) && !common[w] {
			r := []rune(w)
			all = append(all, string(r[:min(len(r), StemChars)]))
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// common are words that occur in every text.
var common = setOf("this that these those with from have has had been were will would could should there their they " +
	"them then than what when where which while your yours into about also just like more most much many some such very " +
	"only over under does done doing here because since please thanks must never always need needs want wants before " +
	"after until dass eine einen einer nicht auch noch aber oder wenn dann sind wird haben hast habe kann kannst bitte " +
	"avec pour dans para como")

// Topic returns the content words of a text without its dates and counts, sorted, each once.
func Topic(text string) []string {
	var rest []string
	for _, w := range SpacedOf(text).Words {
		if cueLexicon.words[w]&(dating|counting) == 0 {
			rest = append(rest, w)
		}
	}
	return ContentWords(strings.Join(rest, " "))
}

// ShareIn returns the share of sorted words that others contains, too.
func ShareIn(words, others []string) float64 {
	n := 0
	for _, w := range words {
		if _, found := slices.BinarySearch(others, w); found {
			n++
		}
	}
	return float64(n) / float64(max(len(words), 1))
}

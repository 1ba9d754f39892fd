package compaction

import (
	"math"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// phrases are words and phrases that are signs of one kind.
type phrases struct {
	words map[string]bool
	parts []string // phrases between spaces, and texts in scripts without spaces
}

func phrasesOf(list string) phrases {
	p := phrases{words: map[string]bool{}}
	for entry := range strings.SplitSeq(list, ", ") {
		switch {
		case strings.ContainsFunc(entry, dense):
			p.parts = append(p.parts, entry)
		case strings.ContainsAny(entry, " '"):
			p.parts = append(p.parts, " "+entry+" ")
		default:
			p.words[entry] = true
		}
	}
	return p
}

// in reports whether a text has one of the phrases.
func (p phrases) in(t spaced) bool {
	return slices.ContainsFunc(t.words, func(w string) bool { return p.words[w] }) ||
		slices.ContainsFunc(p.parts, func(part string) bool { return strings.Contains(t.text, part) })
}

// spaced is a text in lower case whose words stand between single spaces, without other signs than apostrophes.
type spaced struct {
	text  string
	words []string
}

func spacedOf(text string) spaced {
	words := strings.Fields(strings.Map(func(r rune) rune {
		switch {
		case r == '’':
			return '\''
		case r == '\'' || unicode.IsLetter(r) || unicode.IsDigit(r):
			return unicode.ToLower(r)
		}
		return ' '
	}, text))
	return spaced{" " + strings.Join(words, " ") + " ", words}
}

// The signs are those of English, with the commonest of some other languages.
var (
	failing = phrasesOf("error, errors, exception, traceback, fail, failed, fails, failure, fatal, panic, " +
		"denied, refused, undefined, cannot, conflict, fehler, erreur, ошибка, not found, timed out, 错误, エラー")
	pending = phrasesOf("still open, open question, still need, still needs, still missing, still unclear, " +
		"still waiting, unclear, undecided, unresolved, tbd, todo, pending, still nothing, nothing yet, no reply, " +
		"no word, no news, yet to, waiting for, waiting on, not yet, so far, nobody knows, nobody has, no answer, " +
		"not answered, haven't answered, hasn't answered, haven't heard, haven't decided, hasn't decided, don't " +
		"know, remind me, follow up, come back to, to be decided, to be confirmed, to be clarified, open point, " +
		"offen, ungeklärt")
	deciding = phrasesOf("decide, decided, decides, deciding, decision, agree, agreed, chose, chosen, picked, " +
		"opted, approved, rejected, settled on, settled for, went for, went with, go for, go with, going for, " +
		"going with, ruled out, switch to, switched to, switching to, instead of, let's use, we use, we'll use, " +
		"stick to, stick with, signed off, beschlossen, entschieden, décidé, decidido, deciso, решили, " +
		"договорились, 决定, 決め")

	cues = []struct {
		weight float64
		signs  phrases
	}{
		{2, phrasesOf("capped, cap, ceiling, must, mustn't, have to, has to, need to, needs to, require, required, " +
			"requires, shall, should, shouldn't, never, always, forbidden, prohibited, mandatory, not allowed, " +
			"allowed, only, at most, at least, no more than, no less than, maximum, minimum, limit, limited, up to, " +
			"under no circumstances, without, except, unless, otherwise, do not, don't, ever, cannot, can't, avoid, " +
			"whoever, make sure, from now on, no longer, nie, niemals, immer, muss, müssen, darf, dürfen, kein, " +
			"keine, höchstens, mindestens, unbedingt, jamais, toujours, doit, nunca, siempre, debe, mai, sempre, " +
			"deve, никогда, всегда, нельзя, нужно, должен, вместо, 必须, 不要, 始终, 必ず")},
		{1.6, phrasesOf("prefer, prefers, preferred, preferably, preference, rather, favourite, favorite, like, " +
			"likes, love, loves, hate, hates, dislike, want, wants, wish, wishes, fond of, allergic, allergy, vegan, " +
			"vegetarian, call me, instead, fine with, lieber, bevorzuge, préfère, prefiero, allergisch, 喜欢, 过敏")},
		{0.8, phrasesOf("my, mine, our, ours, i'm, i am, i have, i've, we're, we are, we have, we've, mein, meine, " +
			"meiner, unser, unsere, mon, mes, notre, mi, nuestro")},
		{1.5, phrasesOf("deadline, due, midnight, noon, morning, mornings, evening, evenings, afternoon, " +
			"afternoons, until, birthday, appointment, january, february, march, april, june, july, august, " +
			"september, october, november, december, januar, februar, märz, mai, juni, juli, oktober, dezember, " +
			"monday, mondays, tuesday, tuesdays, wednesday, wednesdays, thursday, thursdays, friday, fridays, " +
			"saturday, saturdays, sunday, sundays, montag, dienstag, mittwoch, donnerstag, freitag, samstag, sonntag, " +
			"end of, beginning of, next week, next month, next quarter, next year, no later than, in advance, weeks " +
			"ahead, days before, 截止")},
		{2, deciding},
		{1, phrasesOf("because, since, so that, due to, owing to, reason, therefore, that's why, in order to, " +
			"weil, damit, parce que, porque, perché, потому что, 因为")},
		{1.8, phrasesOf("found, turns out, turned out, cause, caused, causes, comes from, come from, came from, " +
			"culprit, traced, discovered, confirmed, measured, revealed, reveals, result, resulted, shows that, " +
			"showed that, proved, proves, the problem is, the problem was, the issue is, the issue was, the bug is, " +
			"the bug was, the answer is, the fix is, the fix was, the trick is, the solution is, leak, leaks, " +
			"bottleneck, verified, reproduced, learned, identified, concluded, it was the, responsible for, explains, " +
			"ursache, liegt an, stellt sich heraus, gefunden, 原因")},
		{1.4, pending},
		{1.5, phrasesOf("remember, note that, keep in mind, good to know, important, importantly, for the record, " +
			"fyi, by the way, between us, be careful, careful, beware, bear in mind, heads up, before we start, just " +
			"so you know, wichtig, übrigens")},
		{1, phrasesOf("called, named, name is, lives, works for, works at, works as, reached, phone, email, e " +
			"mail, address, contact, born, married, daughter, son, wife, husband, partner, mother, father, sister, " +
			"brother, boss, colleague, landlord, customer, client, owner, budget")},
		{0.6, phrasesOf("no, not, none, nobody, nothing, isn't, aren't, won't, doesn't, didn't, wasn't, haven't, " +
			"hasn't, nicht, pas, не, dislike")},
		{0.8, phrasesOf("two, three, four, five, six, seven, eight, nine, ten, eleven, twelve, fifteen, twenty, " +
			"thirty, forty, fifty, hundred, thousand, million, dozen, half")},
		{0.6, failing},
	}

	// asking matches what only asks for the next step, and announcing what only tells of it.
	asking = regexp.MustCompile(`(?i)^\W*(?:(?:ok(?:ay)?|thanks|good|great|and|now|then|next|please|hm+|yes|no|also|` +
		`hi|hello)[,.!:; ]+)*(?:(?:can|could|would|will) you|please|show|tell|give|find|check|look|run|open|read|write|add|` +
		`put|list|search|explain|summari[sz]e|what|which|how|where|when|why|is|are|do|does)\b`)
	announcing = regexp.MustCompile(`(?i)^\W*(?:(?:ok(?:ay)?|sure|good|great|now|then|next|yes|first)[,.!:; ]+)*` +
		`(?:let me|i(?:['’]ll| will)|i(?:['’]m| am) going to|shall i|should i|would you like|do you want|` +
		`here (?:is|are)|done)\b`)

	// quantity matches a time, or an amount bound to what it counts. A bare number is neither.
	quantity = regexp.MustCompile(`(?i)\d[:.]\d\d\b|\d{4}-\d\d|[$€£¥]\s?\d|\d\s?[$€£¥%°]|\d[\d.,'’]*[\s-]?\pL`)

	// properName matches a name within a sentence.
	properName = regexp.MustCompile(`[\pL\d,;:'’")] \p{Lu}[\pL'’-]+`)
)

// cueScore returns how likely a sentence says what will matter later, from its words alone.
func cueScore(text string) float64 {
	t := spacedOf(text)
	score := 0.3
	for _, c := range cues {
		if c.signs.in(t) {
			score += c.weight
		}
	}
	if quantity.MatchString(text) {
		score += 1.6
	}
	if properName.MatchString(text) {
		score++
	}
	if len(identifiers(text)) > 0 {
		score += 0.5
	}
	switch {
	case announcing.MatchString(text):
		score *= 0.4
	case asking.MatchString(text) && !pending.in(t):
		score *= 0.5
	}
	return score
}

// frequency counts in how many lines a word stands.
type frequency struct {
	lines int
	of    map[string]int
}

func (f *frequency) note(words []string) {
	f.lines++
	for _, w := range words {
		f.of[w]++
	}
}

// novelty returns how rare the words of a line are, from 0 to 1. Chatter repeats its words, also with other numbers.
func (f *frequency) novelty(words []string) float64 {
	if len(words) == 0 {
		return 0.3
	}
	sum := 0.0
	most := math.Log(float64(f.lines + 2))
	for _, w := range words {
		sum += math.Log(float64(f.lines+2)/float64(max(f.of[w], 1))) / most
	}
	return sum / float64(len(words))
}

// stemChars is how many characters of a word are compared, maxContentWords how many words of a text.
const (
	stemChars       = 6
	maxContentWords = 2_000
)

// contentWords returns the beginnings of the words of a text that carry its meaning, sorted, each once: without numbers
// and without the shortest words. Of a script without spaces they are pairs of characters.
func contentWords(text string) []string {
	all := []string{}
	for _, w := range keywords(text, maxContentWords) {
		if strings.ContainsFunc(w, unicode.IsLetter) && !common[w] {
			r := []rune(w)
			all = append(all, string(r[:min(len(r), stemChars)]))
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// common are words that every text has.
var common = setOf("this that these those with from have has had been were will would could should there their they " +
	"them then than what when where which while your yours into about also just like more most much many some such very " +
	"only over under does done doing here because since please thanks must never always need needs want wants before " +
	"after until dass eine einen einer nicht auch noch aber oder wenn dann sind wird haben hast habe kann kannst bitte")

// shareIn returns the share of sorted words that is in others.
func shareIn(words, others []string) float64 {
	n := 0
	for _, w := range words {
		if _, found := slices.BinarySearch(others, w); found {
			n++
		}
	}
	return float64(n) / float64(max(len(words), 1))
}

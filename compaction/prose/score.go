package prose

import (
	"math"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// lexicon maps words and phrases to kinds of sentences that they are a sign of. Each kind is a bit.
type lexicon struct {
	words   map[string]uint32
	phrases map[string][]phrase // by their first words
	dense   []phrase            // texts in scripts without spaces
}

// phrase is a sign of some kinds. For a phrase of words, text is all words after the first, between spaces.
type phrase struct {
	text  string
	kinds uint32
}

func (l *lexicon) add(kinds uint32, list string) {
	for entry := range strings.SplitSeq(list, ", ") {
		first, rest, more := strings.Cut(entry, " ")
		switch {
		case strings.ContainsFunc(entry, Dense):
			l.dense = append(l.dense, phrase{entry, kinds})
		case more:
			l.phrases[first] = append(l.phrases[first], phrase{" " + rest + " ", kinds})
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
	}
	if strings.ContainsFunc(t.Text, Dense) {
		for _, p := range l.dense {
			if strings.Contains(t.Text, p.text) {
				kinds |= p.kinds
			}
		}
	}
	return kinds
}

// kindsAt returns the kinds of a word, and of the phrases that begin with it. after is the text behind the word.
func (l *lexicon) kindsAt(word, after string) uint32 {
	kinds := l.words[word]
	for _, p := range l.phrases[word] {
		if strings.HasPrefix(after, p.text) {
			kinds |= p.kinds
		}
	}
	return kinds
}

// opening returns the kinds at the beginning of a text. It skips fillers that are no sign.
func (l *lexicon) opening(t spaced, fillers map[string]bool) uint32 {
	end := 0
	for _, w := range t.Words {
		end += len(" ") + len(w)
		if kinds := l.kindsAt(w, t.Text[end:]); kinds != 0 || !fillers[w] {
			return kinds
		}
	}
	return 0
}

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
	noting
	relating
	denying
	counting
	failing
	correcting
	Standing // a rule that holds from now on
)

// cues are signs of things that will matter later, with their weights: English ones, and the most common ones of some
// other languages.
var cues = []struct {
	kind   uint32
	weight float64
	signs  string
}{
	{Obliging, 2, "capped, cap, ceiling, must, mustn't, have to, has to, need to, needs to, require, required, " +
		"requires, shall, should, shouldn't, never, always, forbidden, prohibited, mandatory, not allowed, " +
		"allowed, only, at most, at least, no more than, no less than, maximum, minimum, limit, limited, up to, " +
		"under no circumstances, without, except, unless, otherwise, do not, don't, ever, cannot, can't, avoid, " +
		"whoever, make sure, from now on, no longer, whatever you do, hands off, leave it, alone, keep away, keep out, " +
		"stay away, stay out, steer clear, stay clear, nicht anfassen, ne touchez, no tocar, off limits, don't touch, " +
		"do not touch, untouched, stop, refrain, dare, dares, nobody may, no one may, nobody is to, no one is to, nie, " +
		"darfst, dürft, verboten, niemand darf, interdit, défense, ne pas, prohibido, nadie, vietato, nessuno, proibido, " +
		"запрещено, никто, ممنوع, يجب, لا يجوز, ห้าม, ต้อง, 금지, 절대, 반드시, मत, कभी, ज़रूरी, 严禁, 禁止, 不许, 不得, 别动, 千万, 务必, " +
		"niemals, immer, muss, müssen, darf, dürfen, kein, " +
		"keine, höchstens, mindestens, unbedingt, jamais, toujours, doit, nunca, siempre, debe, mai, sempre, " +
		"deve, никогда, всегда, нельзя, нужно, должен, вместо, 必须, 不要, 始终, 必ず"},
	{Standing, 2, "never, always, mustn't, must not, forbidden, prohibited, not allowed, under no circumstances, dare, " +
		"nobody, no one, verboten, niemand, interdit, prohibido, nadie, vietato, nessuno, proibido, запрещено, никто, " +
		"ممنوع, لا يجوز, ห้าม, 금지, 절대, 严禁, 禁止, 不许, 不得, 别动, 千万, 务必, " +
		"do not, from now on, no longer, make sure, whatever you do, hands off, alone, keep away, keep out, stay away, " +
		"stay out, steer clear, stay clear, nicht anfassen, ne touchez, no tocar, off limits, don't touch, untouched, " +
		"nie, niemals, immer, jamais, toujours, nunca, siempre, mai, " +
		"sempre, никогда, всегда, нельзя, 不要, 始终, 必ず"},
	{Wishing, 1.6, "prefer, prefers, preferred, preferably, preference, rather, favourite, favorite, like, " +
		"likes, love, loves, hate, hates, dislike, want, wants, wish, wishes, fond of, allergic, allergy, vegan, " +
		"vegetarian, call me, instead, fine with, i'd rather, lieber, bevorzuge, mag, möchte, hätte gern, préfère, " +
		"j'aimerais, je veux, prefiero, quiero, me gusta, preferisco, vorrei, prefiro, gostaria, предпочитаю, хочу, люблю, " +
		"allergisch, 喜欢, 过敏, 希望, 好き, ほしい, 欲しい, 좋아, 싫어, 원해, أفضل, أريد, पसंद, चाहिए, ชอบ, อยาก, ต้องการ"},
	{Owning, 0.8, "my, mine, our, ours, i'm, i am, i have, i've, we're, we are, we have, we've, mein, meine, " +
		"meiner, unser, unsere, mon, mes, notre, mi, nuestro"},
	{dating, 1.5, "deadline, due, midnight, noon, morning, mornings, evening, evenings, afternoon, " +
		"afternoons, until, birthday, appointment, january, february, march, april, june, july, august, " +
		"september, october, november, december, januar, februar, märz, mai, juni, juli, oktober, dezember, " +
		"monday, mondays, tuesday, tuesdays, wednesday, wednesdays, thursday, thursdays, friday, fridays, " +
		"saturday, saturdays, sunday, sundays, montag, dienstag, mittwoch, donnerstag, freitag, samstag, sonntag, " +
		"end of, beginning of, next week, next month, next quarter, next year, no later than, in advance, weeks " +
		"ahead, days before, 截止"},
	{Deciding, 2, "decide, decided, decides, deciding, decision, agree, agreed, chose, chosen, picked, " +
		"opted, approved, rejected, settled on, settled for, went for, went with, go for, go with, going for, " +
		"going with, ruled out, switch to, switched to, switching to, instead of, let's use, we use, we'll use, " +
		"stick to, stick with, signed off, we keep, we're keeping, are keeping, we'll keep, stay with, staying with, " +
		"dropping, we drop, we'll drop, replace it with, in favour of, in favor of, beschlossen, entschieden, geeinigt, " +
		"festgelegt, freigegeben, statt, nehmen wir, wir nehmen, bleiben bei, décidé, convenu, choisi, au lieu de, " +
		"decidido, decidimos, acordamos, elegimos, en lugar de, en vez de, deciso, scelto, invece di, решили, решено, " +
		"выбрали, договорились, вместо, 决定, 定为, 改用, 选用, 決め, 決ま, にします, 결정, 하기로, قررنا, اتفقنا, तय किया, ตัดสินใจ, ตกลง"},
	{explaining, 1, "because, since, so that, due to, owing to, reason, therefore, that's why, in order to, " +
		"weil, damit, parce que, porque, perché, потому что, 因为"},
	{finding, 1.8, "found, turns out, turned out, cause, caused, causes, comes from, come from, came from, " +
		"culprit, traced, discovered, confirmed, measured, revealed, reveals, result, resulted, shows that, " +
		"showed that, proved, proves, the problem is, the problem was, the issue is, the issue was, the bug is, " +
		"the bug was, the answer is, the fix is, the fix was, the trick is, the solution is, leak, leaks, " +
		"bottleneck, verified, reproduced, learned, identified, concluded, it was the, responsible for, explains, " +
		"ursache, liegt an, stellt sich heraus, gefunden, 原因"},
	{Pending, 2, "still open, open question, still need, still needs, still missing, still unclear, " +
		"still waiting, unclear, undecided, unresolved, tbd, todo, pending, still nothing, nothing yet, no reply, " +
		"no word, no news, yet to, waiting for, waiting on, not yet, so far, nobody knows, nobody has, no answer, " +
		"still to do, left to do, to be done, " +
		"not answered, haven't answered, hasn't answered, haven't heard, haven't decided, hasn't decided, don't " +
		"know, remind me, follow up, come back to, to be decided, to be confirmed, to be clarified, open point, " +
		"offen, ungeklärt, unklar, noch nicht, steht noch aus, fehlt noch, zu klären, en attente, reste à, pas encore, " +
		"pendiente, por saber, por decidir, por confirmar, todavía no, aún no, da decidere, in sospeso, non ancora, " +
		"pendente, неясно, не решено, ещё не, пока не, осталось, 待定, 未定, 尚未, 还没, 还不, まだ, 保留, 미정, 아직, لم يتقرر, " +
		"لا يزال, لم نقرر, तय नहीं, अभी तक, ยังไม่"},
	{noting, 1.5, "remember, note that, keep in mind, good to know, important, importantly, for the record, " +
		"fyi, by the way, between us, be careful, careful, beware, bear in mind, heads up, before we start, just " +
		"so you know, wichtig, übrigens"},
	{relating, 1, "called, named, name is, lives, works for, works at, works as, reached, phone, email, e " +
		"mail, address, contact, born, married, daughter, son, wife, husband, partner, mother, father, sister, " +
		"brother, boss, colleague, landlord, customer, client, owner, budget"},
	{correcting, 1.5, "correction, corrected, moves to, moved to, postponed, brought forward, changed to, changes to, " +
		"not any more, anymore, no longer, actually, rectification, korrektur, doch nicht, verschoben, en fait, " +
		"corrección, исправление, перенесли, 更正, 改为, 訂正"},
	{denying, 0.6, "no, not, none, nobody, nothing, isn't, aren't, won't, doesn't, didn't, wasn't, haven't, " +
		"hasn't, nicht, pas, не, dislike"},
	{counting, 0.8, "two, three, four, five, six, seven, eight, nine, ten, eleven, twelve, fifteen, twenty, " +
		"thirty, forty, fifty, hundred, thousand, million, dozen, half"},
	{failing, 0.6, "error, errors, exception, traceback, fail, failed, fails, failure, fatal, panic, " +
		"denied, refused, undefined, cannot, conflict, fehler, erreur, ошибка, not found, timed out, 错误, エラー"},
}

// Kinds of sentence beginnings: requests for the next step, announcements of it, and introductions.
const (
	Asking = 1 << iota
	announcing
	Introducing // of oneself
)

var (
	cueLexicon = func() *lexicon {
		l := newLexicon()
		for _, c := range cues {
			l.add(c.kind, c.signs)
		}
		return l
	}()
	openings = func() *lexicon {
		l := newLexicon()
		l.add(Asking, "can you, could you, would you, will you, please, show, tell, give, find, check, look, run, open, "+
			"read, write, add, put, list, search, explain, summarize, summarise, what, which, how, where, when, why, is, "+
			"are, do, does")
		l.add(announcing, "let me, i'll, i will, i'm going to, i am going to, shall i, should i, would you like, do you "+
			"want, here is, here are, done")
		l.add(Introducing, "i am, i'm, i have, i've, i live, i work, i speak, i prefer, i like, i love, i hate, "+
			"i'd rather, i would rather, call me, my name, ich bin, ich habe, ich mag, ich möchte, "+
			"je suis, je préfère, prefiero, soy, tengo")
		return l
	}()
	fillers = setOf("ok okay thanks good great and now then next please hm hmm yes no also hi hello sure first")

	// Quantity matches a time, or an amount together with what it counts. A bare number does not match.
	Quantity = regexp.MustCompile(`(?i)\d[:.]\d\d\b|\d{4}-\d\d|[$€£¥]\s?\d|\d\s?[$€£¥%°]|\d[\d.,'’]*[\s-]?\pL`)
)

func newLexicon() *lexicon {
	return &lexicon{words: map[string]uint32{}, phrases: map[string][]phrase{}}
}

// neverMind matches words that forbid nothing.
var neverMind = regexp.MustCompile(`(?i)\bnever mind\b`)

// progress matches how much of something is done.
var progress = regexp.MustCompile(
	`(?i)\b\d+\s*(?:/|of|out of|von|de|sur|di|из)\s*(?:the\s+)?\d+\b|\d\s?% (?:done|of)\b|` +
		`\b` + few + `\s+(?:out )?of\s+(?:the\s+)?` + few + `\b`)

// few matches a small number in words.
const few = `(?:two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|fifteen|twenty|thirty|forty|fifty)`

// Sentence is a text with the kinds of its signs, and the kinds of its beginning.
type Sentence struct {
	Text           string
	kinds, Opening uint32
}

// SentenceOf returns a text with its kinds.
func SentenceOf(text string) Sentence {
	t := SpacedOf(neverMind.ReplaceAllString(text, ""))
	s := Sentence{text, cueLexicon.kindsOf(t), openings.opening(t, fillers)}
	if isQuestion(text) && undecided.MatchString(text) {
		s.kinds |= Pending
	}
	return s
}

// undecided matches what makes a question one about what people will do, rather than one that asks for something now.
var undecided = regexp.MustCompile(`(?i)\bwho (?:will|is going to|owns|would|should|decides|pays|signs|takes)\b|` +
	`\bwhat (?:do|should|shall|would|will) we\b|\b(?:should|shall|must) we\b|` +
	`\bdo we (?:still|ever|want|need|have to)\b|\bare we (?:going|still|allowed)\b|` +
	`\b(?:when|where|how) (?:will|should|shall|do|would) we\b|\bwhen will\b|` +
	`\bwhat (?:if|happens (?:if|when|once))\b|\bwer (?:wird|soll|zahlt|übernimmt|macht|entscheidet|darf)\b|` +
	`\bwas (?:machen|tun) wir\b|\b(?:sollen|wollen|müssen) wir\b|\bwas passiert, wenn\b|` +
	`\bqui (?:va|doit|paie|signe|décide)\b|\bque (?:fait-on|faisons-nous)\b|\b(?:faut-il|devons-nous|doit-on)\b|` +
	`\bquién (?:va a|paga|firma|decide|debe)\b|` +
	`\bqué (?:hacemos|pasa si)\b|\b(?:debemos|deberíamos)\b|\bchi (?:paga|firma|decide|deve)\b|\bcosa facciamo\b|` +
	`\bdobbiamo\b|\bquem (?:vai|paga|assina|decide)\b|\bo que fazemos\b|кто (?:будет|возьм|плат|реш|долж)|что делать|` +
	`(?:нужно|стоит) ли|谁(?:来|负责|会|要|去)|怎么办|要不要|该不该|誰が|どうする|どうします|べきです?か|누가|어떻게 하|해야 할까|ماذا نفعل|هل (?:يجب|نحتاج)`)

// Is reports whether a sentence is of a kind.
func (s Sentence) Is(kind uint32) bool { return s.kinds&kind != 0 }

// CueScore returns how likely it is that a sentence will matter later, judged only by its words.
func (s Sentence) CueScore() float64 {
	score := 0.3
	for _, c := range cues {
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
	if progress.MatchString(s.Text) {
		score += progressWeight
	}
	for range eachIdentifier(s.Text) {
		score += 0.5
		break
	}
	switch {
	case s.IsUnread():
		score += unreadWeight // whatever its beginning
	case s.Opening&announcing != 0:
		score *= 0.4
	case s.Opening&Asking != 0 && !s.Is(Pending|Standing): // "please never …" asks for nothing now
		score *= 0.5
	case s.Opening&Introducing != 0:
		score++
	}
	return score
}

// Weights of kinds that are recognized without cues: progress, and statements in scripts without cues.
const (
	progressWeight = 2.8
	unreadWeight   = 3.5
)

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
	"after until dass eine einen einer nicht auch noch aber oder wenn dann sind wird haben hast habe kann kannst bitte")

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

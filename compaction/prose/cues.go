package prose

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// lexicon maps words and phrases to kinds of sentences that they are a sign of. Each kind is a bit.
type lexicon struct {
	words   map[string]uint32
	stems   map[string][]phrase // by their first stemKey bytes: words that begin with one are a sign
	phrases map[string][]phrase // by their first words
	dense   []phrase            // texts in scripts without spaces
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
		case isStem:
			l.stems[stem[:stemKey]] = append(l.stems[stem[:stemKey]], phrase{stem, kinds})
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

func newLexicon() *lexicon {
	return &lexicon{words: map[string]uint32{}, stems: map[string][]phrase{}, phrases: map[string][]phrase{}}
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
	Standing // a rule that holds from now on
)

// cues are signs of things that will matter later, with their weights: English ones, and the most common ones of some
// other languages.
var cues = []struct {
	kind   uint32
	weight float64
	signs  string
}{
	{Obliging, 2, "may not, not to be, is not to, are not to, capped, cap, ceiling, must, mustn't, have to, has to, " +
		"need to, needs to, require, required, requires, shall, should, shouldn't, never, always, forbidden, " +
		"prohibited, mandatory, not allowed, allowed, only, at most, at least, no more than, no less than, maximum, " +
		"minimum, limit, limited, up to, under no circumstances, without, except, unless, otherwise, do not, don't, " +
		"ever, cannot, can't, avoid, whoever, make sure, from now on, no longer, whatever you do, hands off, " +
		"leave it, alone, keep away, keep out, stay away, stay out, steer clear, stay clear, nicht anfassen, " +
		"ne touchez, no tocar, off limits, don't touch, do not touch, untouched, stop, refrain, dare, dares, " +
		"nobody may, no one may, nobody is to, no one is to, nie, darfst, dürft, verboten, niemand darf, interdit, " +
		"défense, ne pas, prohibido, nadie, vietato, nessuno, proibido, никто, ممنوع, يمنع, يحظر, يجب, لا, ห้าม, " +
		"ต้อง, อย่า, 금지, 절대, 반드시, मत, कभी, ज़रूरी, 严禁, 禁止, 不许, 不得, 不能, 不准, 别动, 千万, 务必, ないで, しないこと, いけません, 使えません, " +
		"forbid*, prohib*, mandator*, requir*, verbot*, verbiet*, interd*, vietat*, proib*, запре*, обяза*, niemals, " +
		"immer, muss, müssen, darf, dürfen, kein, keine, höchstens, mindestens, unbedingt, jamais, toujours, doit, " +
		"nunca, siempre, debe, mai, sempre, deve, никогда, всегда, нельзя, нужно, должен, вместо, 必须, 不要, 始终, 必ず"},
	{Standing, 2, "may not, not to be, is not to, are not to, write to me, answer me, answer in, reply to me, " +
		"reply in, talk to me, speak to me, address me, schreib mir, antworte mir, antworte auf, réponds en, " +
		"écris-moi, responde en, escríbeme, scrivimi, rispondi in, отвечай, пиши мне, never, always, mustn't, " +
		"must not, forbidden, prohibited, not allowed, under no circumstances, dare, as it is, as they are, " +
		"the way it is, wie sie ist, wie es ist, wie sie sind, so lassen, tel quel, como está, как есть, nobody, " +
		"no one, verboten, niemand, interdit, prohibido, nadie, vietato, nessuno, proibido, запрещено, никто, ممنوع, " +
		"لا يجوز, ห้าม, 금지, 절대, 严禁, 禁止, 不许, 不得, 别动, 千万, 务必, do not, from now on, no longer, make sure, " +
		"whatever you do, hands off, alone, keep away, keep out, stay away, stay out, steer clear, stay clear, " +
		"nicht anfassen, ne touchez, no tocar, off limits, don't touch, untouched, nie, niemals, immer, jamais, " +
		"toujours, nunca, siempre, mai, sempre, никогда, всегда, нельзя, 不要, 始终, 必ず"},
	{Wishing, 1.6, "write to me, answer me, answer in, reply to me, reply in, talk to me, speak to me, address me, " +
		"leave out, british english, american english, schreib mir, antworte mir, antworte auf, réponds en, " +
		"écris-moi, responde en, escríbeme, scrivimi, rispondi in, отвечай, пиши мне, prefer, prefers, preferred, " +
		"preferably, preference, rather, favourite, favorite, like, likes, love, loves, hate, hates, dislike, want, " +
		"wants, wish, wishes, fond of, allergic, allergy, vegan, vegetarian, call me, instead, fine with, " +
		"i'd rather, lieber, bevorzuge, mag, möchte, hätte gern, préfère, j'aimerais, je veux, prefiero, quiero, " +
		"me gusta, preferisco, vorrei, prefiro, gostaria, предпочитаю, хочу, люблю, allergisch, 喜欢, 过敏, 希望, 好き, ほしい, " +
		"欲しい, 좋아, 싫어, 원해, أفضل, أريد, पसंद, चाहिए, ชอบ, อยาก, ต้องการ"},
	{Owning, 0.8, "my, mine, our, ours, i'm, i am, i have, i've, we're, we are, we have, we've, mein, meine, meiner, " +
		"unser, unsere, mon, mes, notre, mi, nuestro, we, us, wir, uns, nous, hemos, nosotros, noi, abbiamo, nós, " +
		"temos, мы, нам, наш, наша, 我们, 私たち, 우리, نحن, हम, เรา"},
	{dating, 1.5, "deadline, due, midnight, noon, morning, mornings, evening, evenings, afternoon, afternoons, until, " +
		"birthday, appointment, january, february, march, april, june, july, august, september, october, november, " +
		"december, januar, februar, märz, mai, juni, juli, oktober, dezember, monday, mondays, tuesday, tuesdays, " +
		"wednesday, wednesdays, thursday, thursdays, friday, fridays, saturday, saturdays, sunday, sundays, montag, " +
		"dienstag, mittwoch, donnerstag, freitag, samstag, sonntag, end of, beginning of, next week, next month, " +
		"next quarter, next year, no later than, in advance, weeks ahead, days before, 截止"},
	{Deciding, 2, "settl*, agree*, decid*, decis*, choos*, approv*, reject*, beschl*, entschied*, vereinbar*, " +
		"geeinigt*, festgeleg*, freigegeb*, décid*, conven*, choisi*, acorda*, acordó*, elegi*, scelt*, escolh*, " +
		"реши*, решен*, договор*, выбра*, утверд*, decide, decided, decides, deciding, decision, agree, agreed, " +
		"chose, chosen, picked, opted, approved, rejected, settled on, settled for, went for, went with, go for, " +
		"go with, going for, going with, ruled out, switch to, switched to, switching to, instead of, let's use, " +
		"we use, we'll use, stick to, stick with, signed off, we keep, we're keeping, are keeping, we'll keep, " +
		"stay with, staying with, dropping, we drop, we'll drop, replace it with, in favour of, in favor of, " +
		"beschlossen, entschieden, geeinigt, festgelegt, freigegeben, statt, nehmen wir, wir nehmen, bleiben bei, " +
		"décidé, convenu, choisi, au lieu de, decidido, decidimos, acordamos, elegimos, en lugar de, en vez de, " +
		"deciso, scelto, invece di, решили, решено, выбрали, договорились, вместо, 决定, 定为, 改用, 选用, 決め, 決ま, にします, 결정, " +
		"하기로, قررنا, اتفقنا, तय किया, ตัดสินใจ, ตกลง"},
	{explaining, 1, "because, since, so that, due to, owing to, reason, therefore, that's why, in order to, weil, " +
		"damit, parce que, porque, perché, потому что, 因为"},
	{finding, 1.8, "found, turns out, turned out, cause, caused, causes, comes from, come from, came from, culprit, " +
		"traced, discovered, confirmed, measured, revealed, reveals, result, resulted, shows that, showed that, " +
		"proved, proves, the problem is, the problem was, the issue is, the issue was, the bug is, the bug was, " +
		"the answer is, the fix is, the fix was, the trick is, the solution is, leak, leaks, bottleneck, verified, " +
		"reproduced, learned, identified, concluded, it was the, responsible for, explains, ursache, liegt an, " +
		"stellt sich heraus, gefunden, 原因"},
	{Pending, 2.4, "still open, open question, still need, still needs, still missing, still unclear, still waiting, " +
		"unclear, undecided, unresolved, tbd, todo, pending, still nothing, nothing yet, no reply, no word, no news, " +
		"yet to, waiting for, waiting on, not yet, so far, nobody knows, nobody has, no answer, still to do, " +
		"left to do, to be done, not answered, haven't answered, hasn't answered, haven't heard, haven't decided, " +
		"hasn't decided, don't know, remind me, follow up, come back to, to be decided, to be confirmed, " +
		"to be clarified, open point, offen, ungeklärt, unklar, noch nicht, steht noch aus, fehlt noch, zu klären, " +
		"en attente, reste à, pas encore, pendiente, por saber, por decidir, por confirmar, todavía no, aún no, " +
		"da decidere, in sospeso, non ancora, pendente, неясно, не решено, ещё не, пока не, осталось, 待定, 未定, 尚未, " +
		"还没, 还不, まだ, 保留, 미정, 아직, لم يتقرر, لا يزال, لم نقرر, तय नहीं, अभी तक, ยังไม่"},
	{Noting, 1.5, "remember, note that, keep in mind, good to know, important, importantly, for the record, fyi, " +
		"by the way, between us, be careful, careful, beware, bear in mind, heads up, before we start, " +
		"just so you know, wichtig, übrigens"},
	{relating, 1, "called, named, name is, lives, works for, works at, works as, reached, phone, email, e mail, " +
		"address, contact, born, married, daughter, son, wife, husband, partner, mother, father, sister, brother, " +
		"boss, colleague, landlord, customer, client, owner, budget"},
	{Correcting, 1.5, "update, scrap that, change of plan, change of plans, new plan, not ready, slips to, now on, " +
		"now at, geändert, geändert*, doch am, neuer termin, changement, reporté, reportée, cambio, cambiado, " +
		"se mueve, cambiamento, mudança, изменени*, теперь, перенос*, 改成, 改到, 变更, 変更, 延期, 변경, تغيير, बदल, เปลี่ยน, " +
		"เลื่อน, correction, corrected, moves to, moved to, postponed, brought forward, changed to, changes to, " +
		"not any more, anymore, no longer, actually, rectification, korrektur, doch nicht, verschoben, en fait, " +
		"corrección, исправление, перенесли, 更正, 改为, 訂正"},
	{denying, 0.6, "no, not, none, nobody, nothing, isn't, aren't, won't, doesn't, didn't, wasn't, haven't, hasn't, " +
		"nicht, pas, не, dislike"},
	{counting, 0.8, "two, three, four, five, six, seven, eight, nine, ten, eleven, twelve, fifteen, twenty, thirty, " +
		"forty, fifty, hundred, thousand, million, dozen, half"},
	{failing, 0.6, "error, errors, exception, traceback, fail, failed, fails, failure, fatal, panic, denied, refused, " +
		"undefined, cannot, conflict, fehler, erreur, ошибка, not found, timed out, 错误, エラー"},
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
		l.add(Asking, "go on, go ahead, let's see, let's look, let's go, make, move, rename, fix, change, use, try, "+
			"commit, undo, revert, sort, continue, delete, remove, create, update, implement, refactor, clean, deploy, "+
			"ship, test, build, install, set, same, do the, do it, can you, could you, would you, will you, please, "+
			"show, tell, give, find, check, look, run, open, read, write, add, put, list, search, explain, summarize, "+
			"summarise, what, which, how, where, when, why, is, are, do, does")
		l.add(announcing, "let me, i'll, i will, i'm going to, i am going to, shall i, should i, would you like, "+
			"do you want, here is, here are, done")
		l.add(Introducing, "i am, i'm, i have, i've, i live, i work, i speak, i prefer, i like, i love, i hate, "+
			"i'd rather, i would rather, call me, my name, ich bin, ich habe, ich mag, ich möchte, je suis, je préfère, "+
			"prefiero, soy, tengo")
		return l
	}()
	fillers = setOf("ok okay thanks good great and now then next please hm hmm yes no also hi hello sure first")

	// Quantity matches a time, or an amount together with what it counts. A bare number does not match.
	Quantity = regexp.MustCompile(`(?i)\d[:.]\d\d\b|\d{4}-\d\d|[$€£¥]\s?\d|\d\s?[$€£¥%°]|\d[\d.,'’]*[\s-]?\pL`)
)

// neverMind matches words that forbid nothing.
var neverMind = regexp.MustCompile(`(?i)\bnever mind\b`)

// progress matches how much of something is done.
var progress = regexp.MustCompile(
	`(?i)\b\d+\s*(?:/|of|out of|von|de|sur|di|из)\s*(?:the\s+)?\d+\b|\d\s?% (?:done|of)\b|` +
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

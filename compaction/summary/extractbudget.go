package summary

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/loci-memory/loci/compaction/prose"
	"github.com/loci-memory/loci/recall/tokens"
)

// These are shares of an extracted summary's budget. Room that a part does not use goes to the compared lines.
const (
	lastShare    = 0.36 // the last request
	newShare     = 0.12 // the best compared lines from the messages that leave now
	factShare    = 0.8  // all compared lines, including those
	sureShare    = 0.9  // the same, with lines of at least sureScore
	firstShare   = 0.08 // the first request
	requestsPart = 0.04 // other requests
	statePart    = 0.045
	errorsPart   = 0.15
	callsPart    = 0.05
	namedPart    = 0.04
	nextPart     = 0.06

	smallBudget = 2_048 // tokens up to which other requests come after all compared lines of at least sureScore

	leastState = 44   // tokens of the last state, if that is at most
	mostState  = 0.16 // of the budget

	leastErrors = 56  // tokens of the lines about errors, if that is at most
	mostErrors  = 0.4 // of the budget
)

// within returns the extraction in at most budget tokens, with header as its first line. Only the last request, the
// last state and calls may be shortened; any other line is whole or absent.
func (x *extraction) within(header string, budget int, must prose.MustMention) string {
	f := newSelection(x, header, budget)
	part := func(share float64) int { return int(share * float64(budget)) }
	f.lastRequest(must, part(lastShare))
	f.names(must.Request, f.left)
	f.newest(state, max(part(statePart), min(leastState, part(mostState))), true)
	f.newest(next, part(nextPart), true)
	f.firstRequest(part(firstShare))
	if budget > smallBudget {
		f.newest(requests, part(requestsPart), false)
	}
	f.errors(part(errorsPart))
	if f.layout.forms && budget >= leastForms {
		f.fill(must, part(firstShare))
	}
	strong := max(strongScore, f.usualScore()/2)
	f.lines(part(newShare), func(i item) bool { return !i.carried && i.score >= strong })
	says := func(i item) bool { return i.score >= weakScore }
	f.lines(part(factShare)-f.facts, says)
	f.repeats = true
	f.lines(part(factShare)-f.facts, func(i item) bool { return says(i) && !i.output })
	f.repeats = false
	f.lines(part(factShare)-f.facts, anyItem)
	sure := part(sureShare) - f.facts
	if budget <= smallBudget {
		sure = f.left
	}
	f.lines(sure, func(i item) bool { return i.score >= sureScore })
	f.errors(min(leastErrors, part(mostErrors)))
	f.newest(requests, part(requestsPart), false)
	f.newest(calls, part(callsPart), part(callsPart) >= leastCall)
	f.names(must.Others, part(namedPart))
	f.lines(f.left, anyItem)
	f.newest(requests, f.left, false)
	f.errors(f.left)
	f.newest(calls, f.left, false)
	f.names(must.Others, f.left)
	return f.render(header)
}

func anyItem(item) bool { return true }

// usualScore returns the median score of the compared lines that are carried over; 0 without such lines.
func (f *selection) usualScore() float64 {
	var carried []float64
	for _, a := range f.ranked {
		if i := f.item(a); i.carried {
			carried = append(carried, i.score)
		}
	}
	if len(carried) == 0 {
		return 0
	}
	return carried[len(carried)/2] // they are ranked
}

// lacking returns lines to add to a text, in at most budget tokens: identifiers that the text lacks, and compared lines
// with a score of at least strongScore (of results: sureScore) that it does not mention. It returns "" if there are
// none.
func (x *extraction) lacking(text string, budget int, must prose.MustMention) string {
	f := newSelection(x, prose.LeftOut, budget)
	f.layout = layoutOf(nil)
	f.told = append(f.told, lineOf(text))
	f.text = prose.Folded(text)
	f.lines(f.left*4/5, func(i item) bool {
		least := strongScore
		if i.output {
			least = sureScore
		}
		return i.score >= least || must.CountIn(i.text) > 0 && i.score >= least/2
	})
	f.names(slices.Concat(must.Request, must.Others), f.left)
	if len(f.taken) == 0 {
		return ""
	}
	return f.render(prose.LeftOut)
}

// weakScore is the score below which a line says hardly anything. What was said with other numbers comes before it.
const weakScore = 0.3

// strongScore is the score from which on a summary should not leave out a line. From sureScore on a line matters more
// than calls and names do.
const (
	strongScore = 1.2
	sureScore   = 3
)

// itemKey says where an item stands.
type itemKey struct {
	section section
	index   int
}

// toldLine is a text that the summary already has: its words, numbers and names.
type toldLine struct {
	words []string
	text  string // the spaced text
}

func lineOf(text string) toldLine { return toldLine{lineWords(text), prose.SpacedOf(text).Text} }

// selection is the part of an extraction that is chosen to fit a budget.
type selection struct {
	x      *extraction
	left   int // tokens that are left
	facts  int // tokens of the chosen compared lines
	ranked []itemKey
	taken  map[itemKey]string
	told   []toldLine
	shapes map[string]int // of the chosen lines of results
	text   string         // everything chosen, folded for comparison
	ids    []string
	layout layout

	repeats bool // lines are taken that say with other numbers what many chosen ones say
}

func newSelection(x *extraction, header string, budget int) *selection {
	f := &selection{x: x, layout: x.layout, left: budget - tokens.Estimate(header+"\n"), taken: map[itemKey]string{},
		shapes: map[string]int{}}
	for s, items := range x.items {
		for i := range items {
			if trust[s] > 0 {
				f.ranked = append(f.ranked, itemKey{section(s), i})
			}
		}
	}
	rank := map[itemKey]float64{}
	for _, a := range f.ranked {
		rank[a] = f.item(a).score / math.Sqrt(float64(max(tokens.Estimate(f.item(a).text), leastLine)))
	}
	slices.SortStableFunc(f.ranked, func(a, b itemKey) int { return cmp.Compare(rank[b], rank[a]) })
	f.ranked = f.ranked[:min(len(f.ranked), maxRanked)]
	return f
}

// maxRanked bounds the lines that are compared with each other.
const maxRanked = 600

func (f *selection) item(a itemKey) item { return f.x.items[a.section][a.index] }

// cost returns the tokens of a line. For the first line it adds the tokens of its section's title.
func (f *selection) cost(s section, text string) int {
	n := tokens.Estimate("- " + text + "\n")
	for a := range f.taken {
		if a.section == s {
			return n
		}
	}
	return n + tokens.Estimate(f.layout.titles[s]+"\n")
}

// take takes an item if it costs at most most tokens, and returns its cost. It returns 0 if the item was already taken,
// or is too long.
func (f *selection) take(a itemKey, text string, most int) int {
	if _, again := f.taken[a]; again || text == "" {
		return 0
	}
	n := f.cost(a.section, text)
	if n > min(most, f.left) {
		return 0
	}
	f.left -= n
	f.taken[a] = text
	cut := a.section == state && strings.HasSuffix(text, "…") && !strings.HasSuffix(text, " …")
	if !cut && !lastResultLine.MatchString(text) { // the next summary does not have such a line
		f.told = append(f.told, lineOf(text))
	}
	f.text += "\n" + prose.Folded(text)
	return n
}

// lines takes the compared lines with the highest scores that say something new.
func (f *selection) lines(most int, fits func(item) bool) {
	for _, a := range f.ranked {
		i := f.item(a)
		if !fits(i) || most < leastLine || f.says(a.section, i) ||
			i.shape != "" && f.shapes[i.shape] >= i.shapes && !i.focused {
			continue
		}
		if n := f.take(a, i.text, most); n > 0 {
			most -= n
			f.facts += n
			f.shapes[i.shape]++
		}
	}
}

// leastCall is how many tokens a shortened call has at least. Fewer say only which tool was called.
const leastCall = 24

// leastResult is how many tokens a shortened last result has at least.
const leastResult = 32

// leastLine is the least room, in tokens, for which lines are looked for.
const leastLine = 8

// says reports whether the chosen lines already tell item i. They do if one line has most of its words and all of its
// numbers and names, or if patternLines lines have most of its words and others of these. In decisions and rules, and
// in lines with the words of the focus, no number of them is enough.
func (f *selection) says(s section, i item) bool {
	similar := 0
	var values []string
	for _, t := range f.told {
		if len(i.words) == 0 || prose.ShareIn(i.words, t.words) < sameShare {
			continue
		}
		if values == nil {
			values = valuesOf(i)
		}
		if !slices.ContainsFunc(values, func(v string) bool { return !strings.Contains(t.text, v) }) {
			return true
		}
		similar++
	}
	most := patternLines
	if s == told {
		most++
	}
	return similar >= most && s != decisions && !i.rule && !i.focused && !f.repeats
}

// patternLines is how many lines with the same words and other numbers are kept; one more of the user's.
const patternLines = 2

// sameShare is the share of a line's words from which on another line with these words says the same.
const sameShare = 0.7

// valuesOf returns what distinguishes a line from others with its words, as spaced texts: its words with digits, not
// counting the number of the message, and the names in what was said. Lines of results, which name many things, count
// by their digits.
func valuesOf(i item) []string {
	line, values := numbered.ReplaceAllString("- "+i.text, ""), []string{}
	for _, w := range prose.SpacedOf(line).Words {
		if strings.ContainsAny(w, "0123456789") {
			values = append(values, " "+w+" ")
		}
	}
	if !i.output {
		for _, id := range prose.Identifiers(line) {
			values = append(values, prose.SpacedOf(id).Text)
		}
	}
	return values
}

// newest takes items of a section, the newest first.
func (f *selection) newest(s section, most int, shorten bool) {
	for n, i := range slices.Backward(f.x.items[s]) {
		text := i.text
		if s == requests && strings.Contains(f.text, prose.Folded(numbered.ReplaceAllString("- "+text, ""))) {
			continue // it was asked before
		}
		if shorten && n == len(f.x.items[s])-1 {
			text = f.shortened(s, text, most)
		}
		most -= f.take(itemKey{s, n}, text, most)
	}
}

// errors takes lines about errors, the newest first: those that say themselves that something failed before others.
func (f *selection) errors(most int) {
	for n, i := range slices.Backward(f.x.items[failures]) {
		if i.failed || isSure(i.text) {
			most -= f.take(itemKey{failures, n}, i.text, most)
		}
	}
	f.newest(failures, most, false)
}

// shortened returns a text cut so that it costs at most most tokens; empty if hardly anything would be left.
func (f *selection) shortened(s section, text string, most int) string {
	over := f.cost(s, text) - min(most, f.left)
	switch whole := tokens.Estimate(text); {
	case over <= 0:
		return text
	case s == state && f.wholeSentences(text, most) != "":
		return f.wholeSentences(text, most)
	case s == state && lastResultLine.MatchString(text) && whole-over < leastResult:
		return ""
	case whole-over < leastLine, s == calls && whole-over < leastCall:
		return ""
	default:
		return wholeWords(tokens.Prefix(text, whole-over-2), text) + "…"
	}
}

// wholeWords returns the beginning of a text without the part of a word at its end, because half a name names nothing.
func wholeWords(beginning, text string) string {
	last := strings.LastIndexByte(beginning, ' ')
	if last < len(beginning)*3/4 || strings.HasPrefix(text[len(beginning):], " ") {
		return beginning
	}
	return beginning[:last]
}

// wholeSentences returns the first sentences of a text that cost at most most tokens.
func (f *selection) wholeSentences(text string, most int) string {
	return prose.WholeSentences(text, func(s string) bool { return f.cost(state, s) <= min(most, f.left) })
}

// lastRequest takes the newest request: whole, or its first sentences, or as much of the first sentence as fits. It
// leaves room for the request's other identifiers.
func (f *selection) lastRequest(must prose.MustMention, most int) {
	n := len(f.x.items[requests]) - 1
	if n < 0 {
		return
	}
	text := f.x.items[requests][n].text
	whole := prose.WholeSentences(text, func(s string) bool {
		return f.cost(requests, s) <= min(most, f.left-f.namesCost(must.Request, s))
	})
	if whole == "" || must.Last == nil {
		whole = f.shortened(requests, text, min(most, f.left-f.namesCost(must.Request, "")))
	}
	f.take(itemKey{requests, n}, whole, most)
}

// namesCost returns the tokens of a section with the identifiers that a text does not mention.
func (f *selection) namesCost(ids []string, text string) (n int) {
	text = prose.Folded(text)
	for _, id := range ids {
		if !prose.Mentions(text, id) {
			n += tokens.Estimate(id + ", ")
		}
	}
	if n > 0 {
		n += tokens.Estimate(f.layout.titles[named] + "\n- \n")
	}
	return n
}

// firstRequest takes the first request that is not routine, because it mostly says what the conversation is about.
func (f *selection) firstRequest(most int) {
	all := f.x.items[requests]
	if n := slices.IndexFunc(all, func(i item) bool { return !i.routine }); n >= 0 {
		f.take(itemKey{requests, n}, all[n].text, most)
	}
}

// names takes identifiers that are not mentioned yet.
func (f *selection) names(ids []string, most int) {
	for _, id := range ids {
		if prose.Mentions(f.text, id) {
			continue
		}
		n := tokens.Estimate(id + ", ")
		if len(f.ids) == 0 {
			n += tokens.Estimate(f.layout.titles[named] + "\n- \n")
		}
		if n > min(most, f.left) {
			return
		}
		most -= n
		f.left -= n
		f.ids = append(f.ids, id)
		f.text += "\n" + prose.Folded(id)
	}
}

// render returns what was taken, section by section, in the order of the conversation.
func (f *selection) render(header string) string {
	var b strings.Builder
	if header != "" {
		b.WriteString(header + "\n")
	}
	order := slices.SortedFunc(maps.Keys(f.taken), func(a, b itemKey) int {
		return cmp.Or(cmp.Compare(a.section, b.section), cmp.Compare(f.item(a).seq, f.item(b).seq),
			cmp.Compare(a.index, b.index))
	})
	for _, group := range f.layout.groups {
		lines, title := []string{}, ""
		for _, s := range group {
			title = f.layout.titles[s]
			for _, a := range order {
				if a.section == s {
					lines = append(lines, "- "+f.taken[a]+"\n")
				}
			}
			if s == named && len(f.ids) > 0 {
				lines = append(lines, "- "+strings.Join(f.ids, ", ")+"\n")
			}
		}
		if len(lines) > 0 {
			b.WriteString(title + "\n" + strings.Join(lines, ""))
		}
	}
	return strings.TrimRight(b.String(), "\n")
}

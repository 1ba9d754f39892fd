package compaction

import (
	"cmp"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/loci-memory/loci/recall"
)

// Probes of a summary: identifiers that it must name. Those of the last request come first and are few, the others many.
const (
	maxRequestProbes = 12
	maxProbes        = 40
	probeShare       = 0.3 // of the summary's budget that they may take together
	lastWords        = 12  // of the last request, that are looked for
)

// probes are what a summary is held to.
type probes struct {
	request []string // identifiers of the last request
	others  []string // the most important of the rest, in the order in which they came
	last    *recall.Message
}

// probesOf selects by what speaks for an identifier being needed again: that the user named it, that it was named often, and late. What only
// results of tools name is not asked for: a listing has hundreds.
func probesOf(messages []recall.Message, previous string, budget int) probes {
	var p probes
	type found struct {
		id    string
		first int
		score float64
	}
	var all []*found
	byID := map[string]*found{}
	note := func(at int, weight float64, texts ...string) {
		for _, text := range texts {
			for _, id := range identifiers(text) {
				f := byID[strings.ToLower(id)]
				if f == nil {
					f = &found{id: id, first: len(all)}
					byID[strings.ToLower(id)], all = f, append(all, f)
				}
				f.score += weight * (0.5 + float64(at+1)/float64(len(messages)+1)) / (1 + f.score)
			}
		}
	}
	note(0, 1, plain(previous))
	for i, m := range messages {
		for _, part := range m.Content {
			switch {
			case part.Type == recall.ToolCall:
				note(i, 1, argumentTexts(part.Input)...)
			case part.Type == recall.Text && m.Role == recall.User:
				note(i, 3, part.Text)
			case part.Type == recall.Text:
				note(i, 1, part.Text)
			}
		}
		if m.Role == recall.User && requestText(m) != "" {
			p.last = &messages[i]
		}
	}
	room := int(probeShare * float64(budget))
	if p.last != nil {
		for _, id := range identifiers(requestText(*p.last)) {
			if room -= recall.Tokens(id) + 1; len(p.request) < maxRequestProbes && room >= 0 {
				p.request = append(p.request, id)
			}
		}
	}
	slices.SortStableFunc(all, func(a, b *found) int { return cmp.Compare(b.score, a.score) })
	var chosen []*found
	for _, f := range all {
		if len(chosen) == maxProbes || slices.Contains(p.request, f.id) {
			continue
		}
		if room -= recall.Tokens(f.id) + 1; room < 0 {
			break
		}
		chosen = append(chosen, f)
	}
	slices.SortFunc(chosen, func(a, b *found) int { return cmp.Compare(a.first, b.first) })
	for _, f := range chosen {
		p.others = append(p.others, f.id)
	}
	return p
}

// places are the numbers of messages with which lines of an extracted summary begin.
var places = regexp.MustCompile(`(?m)^- \[\d+(?:–\d+)?\] |\[seq \d+–\d+\]`)

// plain is a summary without what is not its matter: the places of messages, and the calls of one that was extracted.
func plain(summary string) string {
	if before, rest, found := strings.Cut(summary, "\n"+titles[calls]+"\n"); found && strings.HasPrefix(summary, extractedBy) {
		_, after, _ := strings.Cut(rest, "\n"+titles[state]+"\n")
		summary = before + "\n" + after
	}
	return places.ReplaceAllString(strings.TrimPrefix(summary, extractedBy), "")
}

// requestText is what a user said in a message.
func requestText(m recall.Message) string {
	var texts []string
	for _, p := range m.Content {
		if p.Type == recall.Text {
			texts = append(texts, p.Text)
		}
	}
	return strings.TrimSpace(clean(strings.Join(texts, "\n")))
}

// missing are the probes that a text does not name, and whether it has lost the last request.
func (p probes) missing(text string) (ids []string, request bool) {
	lower := folded(text)
	for _, id := range slices.Concat(p.request, p.others) {
		if !mentions(lower, id) {
			ids = append(ids, id)
		}
	}
	return ids, p.last != nil && !tells(lower, requestText(*p.last))
}

// tells says whether a text speaks of a request: by two of its first words, or one where it has few. A summary in another language does
// not, and has it added word for word.
func tells(lower, request string) bool {
	looked := keywords(request, lastWords)
	hits := 0
	for _, word := range looked {
		if strings.Contains(lower, word) {
			hits++
		}
	}
	return hits >= min(2, (len(looked)+1)/2)
}

// Shares and sizes by which an answer is told from a summary.
const (
	echoWindow  = 24   // characters that are looked up in the transcript
	echoWindows = 120  // of them at most
	echoLeast   = 8    // below so many an answer is too short to be an echo
	echoShare   = 0.65 // of them that are the transcript's
	errorChars  = 400  // that an error's text or a refusal has at most
)

// errorText is how an answer begins that is an error or a refusal, and no summary.
var errorText = regexp.MustCompile(`(?i)^\W*(?:an? )?(?:(?:internal )?(?:server )?error\b|exception\b|traceback\b|failed to\b|(?:request )?timed? ?out\b|` +
	`rate limit|too many requests|bad gateway|service unavailable|<!doctype|<html|\{"?error|i(?:'|’)?m (?:sorry|unable|not able)|i am (?:sorry|unable|not able)|` +
	`sorry,|i (?:can(?:'|’)?t|cannot|can not|won(?:'|’)?t) |as an ai\b|no conversation (?:was )?(?:provided|to summarize)|` +
	`please provide the (?:conversation|transcript)|there is no (?:conversation|transcript))`)

// reject says why an answer is no summary, as a sentence for the model; empty if it is one.
func (w *work) reject(r Reply, text string) string {
	switch {
	case text == "":
		return "Your last answer was empty."
	case r.Finish == Refused, r.Finish == "content_filter":
		return "Your last answer was a refusal. Nothing is asked of you but to record what is there."
	case errorText.MatchString(text) && utf8.RuneCountInString(text) <= errorChars:
		return "Your last answer was no summary."
	case w.echoes(text):
		return "Your last answer repeated the transcript. Tell in your own words what matters of it."
	case recall.Tokens(text) > w.budget:
		return fmt.Sprintf("Your last answer was too long. Write at most %d words.", words(w.s.Mode, w.budget)*3/4)
	case r.Finish == "length":
		return "Your last answer was cut off for its length. Write fewer words."
	}
	return ""
}

// echoes says whether an answer is mostly the transcript's own text, or written like one.
func (w *work) echoes(text string) bool {
	if len(messageLine.FindAllStringIndex(text, 4)) == 4 {
		return true
	}
	runes := []rune(strings.Join(strings.Fields(text), " "))
	windows := len(runes) / echoWindow
	if windows < echoLeast {
		return false
	}
	if w.flat == "" {
		w.flat = strings.Join(strings.Fields(joined(w.entries)), " ")
	}
	step := max(1, int(math.Ceil(float64(windows)/echoWindows)))
	looked, found := 0, 0
	for i := 0; i < windows; i += step {
		looked++
		if strings.Contains(w.flat, string(runes[i*echoWindow:(i+1)*echoWindow])) {
			found++
		}
	}
	return float64(found) > echoShare*float64(looked)
}

// messageLine is a line as a transcript begins a message.
var messageLine = regexp.MustCompile(`(?m)^\[\d+\] (?:system|user|assistant|tool)\b[^\n]{0,100}: `)

// thoughts are what some models write before their answer, and wrappings what they put around it.
var (
	thoughts  = regexp.MustCompile(`(?is)^\s*<(think|thinking|reasoning|analysis)>.*?(?:</(?:think|thinking|reasoning|analysis)>|$)`)
	wrappings = regexp.MustCompile("(?is)^(?:```[a-z]*\\s*\\n(.*)\\n```|<summary>(.*)</summary>)$")
)

// textOf is what a reply says, without its thoughts and wrappings, fit to be kept.
func textOf(r Reply) string {
	text := thoughts.ReplaceAllString(clean(r.Text), "")
	if _, answer, found := strings.Cut(text, "</think>"); found { // the opening was the template's
		text = answer
	}
	text = strings.TrimSpace(text)
	if m := wrappings.FindStringSubmatch(text); m != nil {
		text = strings.TrimSpace(m[1] + m[2])
	}
	return text
}

// complaint asks for what an answer has left out.
func complaint(ids []string, request bool, p probes, words int) string {
	var b strings.Builder
	b.WriteString("Your summary leaves out what will be needed. Write it again, whole, and with this in it word for word:\n")
	for _, id := range ids {
		b.WriteString("- " + defused(id) + "\n")
	}
	if request {
		b.WriteString("- what the user asked for last: " + defused(oneLine(requestText(*p.last), requestChars)) + "\n")
	}
	return b.String() + fmt.Sprintf("Write at most %d words, and nothing but the summary.", words)
}

// requestChars is how much of a request is quoted.
const requestChars = 600

// oneLine is a text in one line, of at most so many characters.
func oneLine(text string, chars int) string {
	text = strings.Join(strings.Fields(clean(text)), " ")
	if cut := beginningOf(text, chars); len(cut) < len(text) {
		return strings.TrimSpace(cut) + "…"
	}
	return text
}

package summary

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/loci-memory/loci/chunker/frame"
	"github.com/loci-memory/loci/compaction/plan"
	"github.com/loci-memory/loci/compaction/prose"
	"github.com/loci-memory/loci/recall/tokens"
)

// Limits that tell a summary from other answers.
const (
	echoWindow  = 24   // characters of each piece of the answer that is looked up in the transcript
	echoWindows = 120  // most pieces to look up
	echoLeast   = 8    // pieces of the shortest answer that may be an echo
	echoShare   = 0.65 // an answer is an echo if the transcript contains this share of its pieces
	errorChars  = 400  // the longest error or refusal
	leastTokens = 6    // the shortest summary of more than muchTokens
	leastWords  = 4    // likewise, as wordsIn counts them
	muchTokens  = 500
)

// errorText matches the beginning of an answer that is an error or a refusal.
var errorText = regexp.MustCompile(`(?i)^\W*(?:an? )?(?:(?:internal )?(?:server )?error\b|exception\b|traceback\b|` +
	`failed to\b|(?:request )?timed? ?out\b|rate limit|too many requests|bad gateway|service unavailable|<!doctype|` +
	`<html|\{"?error|i(?:'|’)?m (?:sorry|unable|not able)|i am (?:sorry|unable|not able)|sorry,|` +
	`i (?:can(?:'|’)?t|cannot|can not|won(?:'|’)?t) |as an ai\b|no conversation (?:was )?(?:provided|to summarize)|` +
	`please provide the (?:conversation|transcript)|there is no (?:conversation|transcript))`)

// fault is the reason why an answer is not a summary.
type fault struct {
	told string // a sentence for the model that says what to change; empty: no fault
	why  string // for the organization and the operator
}

// repeating is the fault of an answer that is the same words again and again.
var repeating = fault{"Your last answer said the same again and again.",
	"the model's answer said the same again and again"}

// reject returns why an answer is not a summary. The fault is empty if it is one.
func (w *writer) reject(r Reply, text string) fault {
	f := w.unfit(r, text)
	switch {
	case f.told != "" && f != repeating: // a text that repeats itself may also have no end
		return f
	case w.isTooLong(text):
		words := plan.FormatWords(w.e.Format, w.s.Mode, w.budget) * 3 / 4
		return fault{fmt.Sprintf("Your last answer was too long. Write at most %d words.", words),
			"the model's answer was too long"}
	case r.Finish == "length":
		return fault{"Your last answer was cut off for its length. Write fewer words.",
			"the model's answer was cut off for its length"}
	}
	return f
}

// unfit returns why an answer is no summary, however long it may be. The fault is empty if it is one.
func (w *writer) unfit(r Reply, text string) fault {
	switch {
	case text == "" && w.e.Format != nil && w.e.Format.Tagged && strings.TrimSpace(r.Text) != "":
		return fault{"Your last answer has no summary between <summary> tags.",
			"the model wrote no summary between <summary> tags"}
	case text == "":
		return fault{"Your last answer was empty.", "the model's answer was empty"}
	case r.Finish == Refused, r.Finish == "content_filter":
		return fault{"Your last answer was a refusal. You are only asked to record what was said.",
			"the model refused to answer"}
	case errorText.MatchString(text) && utf8.RuneCountInString(text) <= errorChars:
		return fault{"Your last answer was no summary.", "the model answered with an error or an excuse"}
	case isNoise(text):
		return fault{"Your last answer was not readable text.", "the model's answer was not readable text"}
	case (tokens.Estimate(text) < leastTokens || wordsIn(text) < leastWords) && prose.TokensIn(w.entries) > muchTokens:
		return fault{"Your last answer was too short to be a summary.",
			"the model's answer was too short to be a summary"}
	case w.isUnrelated(text):
		return fault{"Your last answer was not about the conversation.",
			"the model's answer was not about the conversation"}
	case w.echoes(text):
		return fault{"Your last answer repeated the transcript. Say in your own words what matters in it.",
			"the model repeated the transcript"}
	case closings.MatchString(text):
		return fault{"Your last answer has tags of the transcript in it. Write plain text without them.",
			"the model's answer had tags of the transcript in it"}
	case repeatsItself(text):
		return repeating
	}
	return fault{}
}

// isTooLong reports whether an answer takes more than the budget. An answer with as few words as were asked for may
// take up to twice the budget, because the names in it may be long.
func (w *writer) isTooLong(text string) bool {
	n := tokens.Estimate(text)
	return n > w.budget && (n > 2*w.budget || wordsIn(text) > plan.FormatWords(w.e.Format, w.s.Mode, w.budget))
}

// wordsIn counts the words of a text. In a script without spaces, two characters count as a word.
func wordsIn(text string) int {
	unspaced := 0
	for _, r := range text {
		if unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul, unicode.Thai, unicode.Khmer,
			unicode.Lao, unicode.Myanmar) {
			unspaced++
		}
	}
	return len(strings.Fields(text)) + unspaced/2
}

// grant raises the budget so that an accepted answer stays whole, and what it lacks can be added.
func (w *writer) grant(text string) {
	w.accepted = tokens.Estimate(text)
	w.budget = max(w.budget, w.accepted+int(addedShare*float64(w.budget)))
}

// addedShare is the share of a budget that an accepted answer leaves free at least.
const addedShare = 0.15

// echoes reports whether an answer repeats the request, consists mostly of the transcript's text, or looks like a
// transcript.
func (w *writer) echoes(text string) bool {
	if text == textOf(Reply{Text: w.asked}) || len(messageLine.FindAllStringIndex(text, 4)) == 4 {
		return true
	}
	runes := []rune(strings.Join(strings.Fields(text), " "))
	windows := len(runes) / echoWindow
	if windows < echoLeast {
		return false
	}
	if w.flat == "" {
		w.flat = strings.Join(strings.Fields(prose.Joined(w.entries)), " ")
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

// Limits that tell text in any language from noise.
const (
	readableShare = 0.5 // least share of characters that are letters, digits or spaces
	maxScripts    = 5   // most scripts that the letters belong to
	longestWord   = 400 // in characters, in a script with spaces
)

// closings match tags that end a summarizer's material, or the place where a summary is shown.
var closings = regexp.MustCompile(`(?i)<\s*/\s*(?:transcript|earlier_summary|summary|system)\b`)

// isNoise reports whether a text is in no language: it has few letters, characters without meaning, letters from more
// than maxScripts scripts, or a word longer than longestWord.
func isNoise(text string) bool {
	all, readable, broken, word, longest := 0, 0, 0, 0, 0
	var scripts []*unicode.RangeTable
	for _, r := range text {
		all++
		word++
		switch {
		case unicode.IsSpace(r), prose.Dense(r):
			word = 0
			readable++
		case unicode.IsLetter(r), unicode.IsDigit(r), unicode.IsMark(r):
			readable++
		case r == utf8.RuneError, unicode.Is(unicode.Co, r), !unicode.IsGraphic(r) && !unicode.Is(unicode.Cf, r):
			broken++
		}
		longest = max(longest, word)
		if len(scripts) <= maxScripts && r >= utf8.RuneSelf && unicode.IsLetter(r) && !unicode.In(r, scripts...) {
			scripts = append(scripts, scriptOf(r))
		}
	}
	return float64(readable) < readableShare*float64(all) || broken*20 > all || len(scripts) > maxScripts ||
		longest > longestWord
}

// Limits that recognize an answer that repeats itself, or is about something else.
const (
	leastWordsRepeated = 60   // words of the shortest answer that is checked
	distinctShare      = 0.05 // least share of words that differ
	leastWordsCompared = 40   // content words of the shortest answer that is compared with the material
	relatedShare       = 0.02 // least share of content words that the material contains
)

// repeatsItself reports whether hardly any of a text's words differ.
func repeatsItself(text string) bool {
	distinct, all := map[string]bool{}, 0
	for word := range strings.FieldsSeq(strings.ToLower(text)) {
		distinct[word] = true
		all++
	}
	return all >= leastWordsRepeated && float64(len(distinct)) < distinctShare*float64(all)
}

// isUnrelated reports whether a long answer shares hardly a word with the material, and none of its numbers and
// identifiers. A summary in another language shares some of these.
func (w *writer) isUnrelated(text string) bool {
	words := prose.ContentWords(text)
	if len(words) < leastWordsCompared {
		return false
	}
	material := prose.Joined(w.entries) + "\n" + w.previous
	if w.e.Self != nil {
		material += "\n" + w.e.Self.System
	}
	known := map[string]bool{}
	for _, word := range prose.Keywords(material, math.MaxInt) {
		r := []rune(word)
		known[string(r[:min(len(r), prose.StemChars)])] = true
	}
	related := 0
	for _, word := range words {
		if known[word] {
			related++
		}
	}
	if float64(related) >= relatedShare*float64(len(words)) {
		return false
	}
	lower := prose.Folded(material)
	mentioned := func(id string) bool { return prose.Mentions(lower, id) }
	return !slices.ContainsFunc(append(prose.Identifiers(text), number.FindAllString(text, -1)...), mentioned)
}

// number matches a number so long that two texts seldom share it by chance.
var number = regexp.MustCompile(`\d[\d.,]*\d`)

func scriptOf(r rune) *unicode.RangeTable {
	for _, table := range unicode.Scripts {
		if unicode.Is(table, r) {
			return table
		}
	}
	return unicode.Letter
}

// messageLine matches a line that begins a message in a transcript.
var messageLine = regexp.MustCompile(`(?m)^\[\d+\] (?:system|user|assistant|tool)\b[^\n]{0,100}: `)

// thoughts match the thoughts that some models write before their answer; wrappings match the text that they put around
// it.
var (
	thoughts = regexp.MustCompile(
		`(?is)^\s*<(think|thinking|reasoning|analysis)>.*?(?:</(?:think|thinking|reasoning|analysis)>|$)`)
	wrappings = regexp.MustCompile("(?is)^(?:```[a-z]*\\s*\\n(.*)\\n```|[^<]{0,200}<summary>(.*)</summary>)$")
)

// textOf returns the summary in a reply, read by its format.
func (w *writer) textOf(r Reply) string {
	if f := w.e.Format; f != nil && f.Tagged {
		return f.SummaryOnly(prose.Clean(r.Text))
	}
	return textOf(r)
}

// textOf returns the text of a reply, cleaned, without thoughts and wrappings.
func textOf(r Reply) string {
	text := thoughts.ReplaceAllString(prose.Clean(r.Text), "")
	if _, answer, found := strings.Cut(text, "</think>"); found { // the chat template wrote the opening tag
		text = answer
	}
	text = strings.TrimSpace(text)
	if m := wrappings.FindStringSubmatch(text); m != nil {
		text = strings.TrimSpace(m[1] + m[2])
	}
	return text
}

// complaint asks for what an answer lacks: identifiers and the last request.
func (w *writer) complaint(ids []string, request bool) string {
	var b strings.Builder
	b.WriteString("Your summary leaves out what will be needed. Write it again, whole, " +
		"and with this in it word for word:\n")
	for _, id := range ids {
		b.WriteString("- " + frame.Neutralize(id) + "\n")
	}
	if request {
		asked := prose.OneLine(prose.RequestText(*w.must.Last), prose.RequestChars)
		b.WriteString("- what the user asked for last: " + frame.Neutralize(asked) + "\n")
	}
	return b.String() + fmt.Sprintf("Write at most %d words, and nothing but the summary.",
		plan.FormatWords(w.e.Format, w.s.Mode, w.budget))
}

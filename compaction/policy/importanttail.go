package policy

import (
	"strings"

	"github.com/loci-memory/loci/compaction/clip"
	"github.com/loci-memory/loci/recall/tokens"
)

// ImportantTail limits the size of each result. It keeps a result's end if the end says whether the call succeeded.
type ImportantTail struct {
	MaxChars    int     `json:"max_chars" min:"500" max:"10000000"`
	WindowShare float64 `json:"window_share" min:"0.01" max:"1"`
	TailShare   float64 `json:"tail_share" min:"0" max:"0.9"`
	TailChars   int     `json:"max_tail_chars" min:"0" max:"10000000"`
}

func (*ImportantTail) describe() Mechanism {
	return Mechanism{Name: "important_tail", Stage: Enter, Source: "OpenClaw, cap of live results",
		Words: "Shows the beginning of long results, and the end where it has an error, a summary, or closes JSON.",
		Settings: map[string]string{
			"max_chars":      "What a result takes at most, with the note on what is left out.",
			"window_share":   "And never more than this share of the window, at four characters a token.",
			"tail_share":     "What an important end gets of that.",
			"max_tail_chars": "What an important end gets at most.",
		},
		New: func() Step {
			return &ImportantTail{MaxChars: 16_000, WindowShare: 0.3, TailShare: 0.3, TailChars: 4000}
		}}
}

// noteChars is about the length of the note on a clip.
const noteChars = 120

// Edits clips results.
func (t *ImportantTail) Edits(v clip.View, _ Moment) (edits []clip.Edit) {
	most := t.MaxChars
	if v.Window > 0 {
		most = min(most, int(t.WindowShare*float64(v.Window))*charsPerToken)
	}
	for r := range results(v) {
		if r.edit != nil || !r.longerThan(most) {
			continue
		}
		edits = append(edits, t.clip(v, r, most))
	}
	return edits
}

// clip returns the clip that takes at most most characters, including its note.
func (t *ImportantTail) clip(v clip.View, r result, most int) clip.Edit {
	ends := hasImportantTail(r.p.Text)
	for chars := max(most-noteChars, 0); ; {
		tail := 0
		if ends {
			tail = min(int(t.TailShare*float64(chars)), t.TailChars)
		}
		e := r.headAndTail("important_tail", chars-tail, tail)
		over := tokens.Chars(v.ShownPart(*r.m, e).Text) - most
		if over <= 0 || chars == 0 {
			return e
		}
		chars = max(chars-over, 0)
	}
}

// These words at the end of a text say whether a call succeeded.
var (
	errorWords = []string{"error", "exception", "failed", "fatal", "traceback", "panic", "stack trace", "errno",
		"exit code"}
	summaryWords = []string{"total", "summary", "result", "complete", "finished", "done"}
)

// tailBytes is how much of a text's end is searched for these words.
const tailBytes = 2000

// hasImportantTail reports whether a text's end says whether the call succeeded, or closes JSON.
func hasImportantTail(text string) bool {
	end := strings.ToLower(text[max(len(text)-tailBytes, 0):])
	return saysFailure(end) || strings.HasSuffix(strings.TrimSpace(end), "}") || sumsUp(end)
}

// saysFailure reports whether a lower-case text contains an error word, also as the end of a name like TypeError.
func saysFailure(text string) bool { return hasWord(text, errorWords, false) }

// sumsUp reports whether a lower-case text contains a summary word.
func sumsUp(text string) bool { return hasWord(text, summaryWords, true) }

// hasWord reports whether a text contains one of these words, also in the plural. If whole is true, the word must not
// be the end of a longer one.
func hasWord(text string, words []string, whole bool) bool {
	for _, w := range words {
		for from := 0; ; {
			i := strings.Index(text[from:], w)
			if i < 0 {
				break
			}
			begin := from + i
			from = begin + len(w)
			if (!whole || begin == 0 || !inWord(text[begin-1])) && endsWord(text[from:]) {
				return true
			}
		}
	}
	return false
}

// endsWord reports whether a word ends before text, or before a plural s at its beginning.
func endsWord(text string) bool {
	text = strings.TrimPrefix(text, "s")
	return text == "" || !inWord(text[0])
}

func inWord(b byte) bool { return b >= 'a' && b <= 'z' || b >= '0' && b <= '9' }

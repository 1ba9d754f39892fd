package prose

import (
	"regexp"
	"slices"
	"strings"

	"github.com/loci-memory/loci/recall"
)

// Format describes a kind of summary: the request to the model, the parts that Loci appends, and the words around it.
type Format struct {
	Sections  []FormatSection `json:"sections"`             // in order
	MaxTokens int             `json:"max_tokens,omitempty"` // tokens of the text; 0: the plan's budget
	ByModel   int             `json:"by_model,omitempty"`   // tokens of a text by a model; 0: the plan's budget
	MaxWords  int             `json:"max_words,omitempty"`  // words to ask the model for; 0: as many as the mode allows
	Before    string          `json:"before,omitempty"`     // words before the summary where a model reads it
	After     string          `json:"after,omitempty"`      // words behind the summary where a model reads it

	Tagged  bool `json:"tagged,omitempty"`  // the model first thinks in <analysis>; only the text in <summary> counts
	Checked bool `json:"checked,omitempty"` // a summary without a heading is asked for again

	Staged   bool `json:"staged,omitempty"`    // a transcript too long for the model is summarized in parts, then merged
	HeadDrop bool `json:"head_drop,omitempty"` // if a transcript is too long, its oldest rounds are left out

	UserMessages bool `json:"user_messages,omitempty"` // all messages of the user are appended word for word
	RecentTurns  int  `json:"recent_turns,omitempty"`  // this many of the newest turns that leave are appended, shortened
	Failures     int  `json:"failures,omitempty"`      // this many failed calls are appended
	Files        bool `json:"files,omitempty"`         // lists of the files read and modified are appended
}

// FormatSection is a section of a summary.
type FormatSection struct {
	Heading string   `json:"heading"` // a line of its own
	Words   string   `json:"words"`   // what the section contains, for a model
	From    []string `json:"from"`    // what it contains without a model, of extractedNames; none: nothing
}

// Making says how a plan's summary is made.
type Making struct {
	Format *Format       // nil: the format of the settings' mode
	Quoted int           // tokens of the budget for quotes of the user, if the format has them; 0: half of it
	Notes  string        // text that becomes the summary, without a model; empty: a summary is written
	Hidden bool          // the summary only says that messages are hidden
	Split  int           // position of the first message in the turn that the cut divides; 0: no turn is divided
	Calls  []recall.Part // more calls with files for the list of files
	Named  []Named       // files that are not shown again, which the summary names at its end
}

// Named is a file that was read, and the message with its content.
type Named struct {
	Path string
	Seq  int64
}

// Lacks returns the headings that a text lacks.
func (f *Format) Lacks(text string) (missing []string) {
	if f == nil || !f.Checked {
		return nil
	}
	for _, s := range f.Sections {
		if !strings.Contains(strings.ToLower(text), strings.ToLower(strings.Trim(s.Heading, "#: "))) {
			missing = append(missing, s.Heading)
		}
	}
	return missing
}

// SummaryOnly returns the text between the summary tags of a tagged format's answer. The closing tag may be missing, as
// may an analysis; tags may be in any case. An answer without any summary tag counts whole, but for an analysis; empty
// if there is nothing else.
func (f *Format) SummaryOnly(text string) string {
	if f == nil || !f.Tagged {
		return text
	}
	text = formatTag.ReplaceAllStringFunc(text, strings.ToLower)
	if _, inside, found := strings.Cut(text, "<summary>"); found {
		text, _, _ = strings.Cut(inside, "</summary>")
		return strings.TrimSpace(text)
	}
	before, rest, found := strings.Cut(text, "<analysis>")
	if found {
		_, rest, _ = strings.Cut(rest, "</analysis>")
	}
	return strings.TrimSpace(before + rest)
}

// formatTag matches a tag of a tagged format, in whatever case a model writes it.
var formatTag = regexp.MustCompile(`(?i)</?(?:summary|analysis)>`)

// numberedHeading matches a heading of a summary without a format: a number, marks of Markdown, or a word and a colon.
var numberedHeading = regexp.MustCompile(
	`^(#{1,4} |\*\*[^*]{1,60}\*\*:?$|\d{1,2}\. ?[\p{L}*][^.]{0,60}:|[\p{Lu}][\p{L} ]{1,40}:$)`)

// IsHeading reports whether a line of a summary is a heading: one that the format names, or any other that looks like
// one, because a model may add headings. A nil Format names none.
func (f *Format) IsHeading(line string) bool {
	if numberedHeading.MatchString(line) {
		return true
	}
	if f == nil {
		return false
	}
	name := func(s string) string { return strings.ToLower(strings.Trim(s, "#*: ")) }
	return slices.ContainsFunc(f.Sections, func(s FormatSection) bool {
		return strings.HasPrefix(strings.ToLower(line), strings.ToLower(s.Heading)) || name(line) == name(s.Heading)
	})
}

// UserHeading stands before the user's messages that a summary quotes. They are its last part, and no other part takes
// their room.
const UserHeading = "## All user messages, word for word"

// QuotesUser reports whether a summary in this format quotes all messages of the user.
func (f *Format) QuotesUser() bool { return f != nil && f.UserMessages }

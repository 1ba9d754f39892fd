package prose

import (
	"strings"

	"github.com/loci-memory/loci/recall"
)

// Format says what a summary is like: what a model is asked for, what Loci adds, and the words around it.
type Format struct {
	Sections  []FormatSection `json:"sections"`             // in order
	MaxTokens int             `json:"max_tokens,omitempty"` // of the text; 0: the plan's budget
	MaxWords  int             `json:"max_words,omitempty"`  // that a model is asked for; 0: as many as in the mode
	Before    string          `json:"before,omitempty"`     // where a model reads the summary: before it
	After     string          `json:"after,omitempty"`      // where a model reads the summary: after it

	Tagged  bool `json:"tagged,omitempty"`  // the model thinks in <analysis> first; only what is in <summary> counts
	Checked bool `json:"checked,omitempty"` // a summary without a heading is asked for again

	Staged   bool `json:"staged,omitempty"`    // what is too long for the model is summarized in parts, then merged
	HeadDrop bool `json:"head_drop,omitempty"` // of what is too long for the model, the oldest rounds are left out

	UserMessages bool `json:"user_messages,omitempty"` // all messages of the user follow, word for word
	RecentTurns  int  `json:"recent_turns,omitempty"`  // so many newest turns of those that leave follow, shortened
	Failures     int  `json:"failures,omitempty"`      // so many failed calls follow
	Files        bool `json:"files,omitempty"`         // lists of the files that were read and modified follow
}

// FormatSection is a section of a summary.
type FormatSection struct {
	Heading string   `json:"heading"` // a line of its own
	Words   string   `json:"words"`   // what it is to hold, for a model
	From    []string `json:"from"`    // what it holds without a model, of extractedNames; none: nothing
}

// Making says how the summary of a plan is made.
type Making struct {
	Format *Format       // nil: that of the settings' mode
	Quoted int           // tokens of the budget for the messages of the user that the format quotes; 0: half of it
	Notes  string        // the text that becomes the summary, without a model; empty: one is written
	Hidden bool          // it says only that messages are hidden
	Split  int           // position of the first message of the turn that the cut divides; 0: it divides none
	Calls  []recall.Part // of which the list of files has the files, too
	Named  []Named       // what was read, is too long to be shown again, and is named after the summary
}

// Named is a file that was read, and the message with what was read of it.
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

// SummaryOnly returns what stands between the summary tags of a tagged format's answer; empty if it has none. A closing
// tag may be missing.
func (f *Format) SummaryOnly(text string) string {
	if f == nil || !f.Tagged {
		return text
	}
	_, text, _ = strings.Cut(text, "<summary>")
	text, _, _ = strings.Cut(text, "</summary>")
	return strings.TrimSpace(text)
}

// UserHeading stands before the messages of the user that a summary quotes. They are its last part, and no other part
// takes their room.
const UserHeading = "## All user messages, word for word"

// QuotesUser reports whether a summary of the format quotes all messages of the user.
func (f *Format) QuotesUser() bool { return f != nil && f.UserMessages }

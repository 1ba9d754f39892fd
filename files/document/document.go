// Package document reads the text of documents: it turns the bytes of a format into Markdown, and keeps where its pages begin. It knows
// nothing of where documents come from or go to.
package document

// Text is what a reader makes of a document: valid UTF-8 without NUL, its lines ended by LF.
type Text struct {
	Text    string
	Charset string // of a format that is plain text, as "utf-8"; empty for others
	Pages   []int  // the 1-based line on which each page, slide or sheet begins, ascending; nil where the format has none
}

// UnreadableError says, in a sentence for whoever uploaded it, why a document gives no text; reading it again would not help.
type UnreadableError struct{ Reason string }

func (e *UnreadableError) Error() string { return e.Reason }

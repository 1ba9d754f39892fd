package chat

import "strings"

// thoughtTags begin the thoughts that endpoints leave in a model's text: those of most open models, of models that are
// told to think in a tag, and of Gemini.
var thoughtTags = []string{"<think>", "<thinking>", "<thought>"}

// blank are the characters between thoughts and a text.
const blank = " \t\r\n"

// Thoughts takes the thoughts at the beginning of a model's text out of it. The text comes in pieces, which may cut
// tags. A thought that does not end is the rest of the text. A tag after the text has begun is text.
type Thoughts struct {
	held    string // is not known to be a thought or a text
	closing string // the tag that ends the thought; empty outside of one
	found   bool   // a thought has ended
	begun   bool   // the thought has more than blank characters
	said    bool   // the text has begun
}

// Add returns which part of a piece, and of those before it that are not returned yet, is thought and which is text.
func (t *Thoughts) Add(piece string) (thought, text string) {
	for t.held += piece; t.held != ""; {
		switch {
		case t.said:
			text += t.take(len(t.held))
		case t.closing != "":
			more, ended := t.think()
			if thought += more; !ended {
				return thought, text
			}
		case !t.begin():
			return thought, text
		}
	}
	return thought, text
}

// End returns the rest of thought and text.
func (t *Thoughts) End() (thought, text string) {
	switch rest := t.take(len(t.held)); {
	case t.closing != "":
		return t.trimmed(rest), ""
	case t.found:
		return "", strings.TrimLeft(rest, blank)
	default:
		return "", rest
	}
}

func (t *Thoughts) take(n int) (taken string) {
	taken, t.held = t.held[:n], t.held[n:]
	return taken
}

// begin finds out whether a thought or the text begins; false if that is not known yet.
func (t *Thoughts) begin() bool {
	rest := strings.TrimLeft(t.held, blank)
	undecided := rest == ""
	for _, tag := range thoughtTags {
		if strings.HasPrefix(rest, tag) {
			t.held, t.closing, t.begun = rest[len(tag):], "</"+tag[1:], false
			return true
		}
		undecided = undecided || strings.HasPrefix(tag, rest)
	}
	if undecided {
		return false
	}
	if t.said = true; t.found {
		t.held = rest
	}
	return true
}

// think returns the next part of a thought, and whether the thought has ended.
func (t *Thoughts) think() (thought string, ended bool) {
	if at := strings.Index(t.held, t.closing); at >= 0 {
		thought = t.trimmed(t.take(at))
		t.take(len(t.closing))
		t.closing, t.found = "", true
		return thought, true
	}
	open := len(t.held)
	for n := min(len(t.closing)-1, len(t.held)); n > 0; n-- {
		if strings.HasPrefix(t.closing, t.held[len(t.held)-n:]) {
			open -= n
			break
		}
	}
	return t.trimmed(t.take(open)), false
}

// trimmed drops the blank characters at the beginning of a thought.
func (t *Thoughts) trimmed(thought string) string {
	if !t.begun {
		thought = strings.TrimLeft(thought, blank)
		t.begun = thought != ""
	}
	return thought
}

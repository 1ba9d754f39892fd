package chat

import "strings"

// thoughtTags begin thoughts that endpoints leave in a model's text. They come from most open models, from models that
// are told to think in a tag, and from Gemini.
var thoughtTags = []string{"<think>", "<thinking>", "<thought>"}

// blank are the characters that may stand between thoughts and text.
const blank = " \t\r\n"

// Thoughts separates thoughts at the beginning of a model's text from the text. The text comes in pieces, which may cut
// tags in two. A thought without a closing tag lasts to the end. A tag after the text has begun is text.
type Thoughts struct {
	held    string // not yet known to be thought or text
	closing string // the tag that ends the current thought; empty outside of one
	found   bool   // a thought has ended
	begun   bool   // the thought has non-blank characters
	said    bool   // the text has begun
}

// Add adds a piece of the text. It returns what is now known to be thought and what is known to be text, including
// earlier pieces that were held back.
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

// End returns what was held back, as thought or as text.
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

// begin finds out whether a thought or the text begins. It returns false if that is not known yet.
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

// think returns the next part of the thought. ended reports whether the thought is over.
func (t *Thoughts) think() (thought string, ended bool) {
	if end := strings.Index(t.held, t.closing); end >= 0 {
		thought = t.trimmed(t.take(end))
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

// trimmed drops blank characters at the beginning of a thought.
func (t *Thoughts) trimmed(thought string) string {
	if !t.begun {
		thought = strings.TrimLeft(thought, blank)
		t.begun = thought != ""
	}
	return thought
}

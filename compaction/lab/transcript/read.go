package transcript

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// MaxBytes bounds a transcript.
const MaxBytes = 1 << 30

// Read reads the transcripts in a file: most files have one, data sets have several. It recognizes the format by the
// content. It returns an *Error with the line that is not understood.
func Read(name string, r io.Reader) ([]Transcript, error) { return read(document{name: name}, r) }

// ReadWhole is Read for a file that may be broken in places, such as the last line of a session that was killed. It
// leaves out messages that cannot be read, and returns an error for each. If fewer are sound, the file is refused.
func ReadWhole(name string, r io.Reader) (all []Transcript, left []*Error, err error) {
	all, err = read(document{name: name, left: &left}, r)
	if err != nil && len(left) > 0 {
		return nil, nil, left[0]
	}
	return all, left, err
}

func read(d document, r io.Reader) ([]Transcript, error) {
	name := d.name
	data, err := io.ReadAll(io.LimitReader(r, MaxBytes+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	d.data = bytes.TrimPrefix(data, []byte("\ufeff"))
	if len(data) > MaxBytes {
		return nil, d.fail(0, "the file has more than %d bytes", MaxBytes)
	}
	if !utf8.Valid(d.data) {
		return nil, d.fail(invalidAt(d.data), "the text is no UTF-8")
	}
	values, err := d.values()
	if err != nil {
		return nil, err
	}
	if len(values) == 0 {
		return nil, d.fail(0, "the file is empty")
	}
	all, err := d.transcripts(values)
	if err != nil {
		return nil, err
	}
	if len(all) == 0 {
		return nil, d.fail(0, "the file has no session")
	}
	for i := range all {
		if len(all) > 1 {
			all[i].Name = fmt.Sprintf("%s#%d", name, i+1)
		} else {
			all[i].Name = name
		}
		if len(all[i].Drafts) == 0 {
			return nil, d.fail(0, "transcript %d has no messages", i+1)
		}
	}
	return all, nil
}

// invalidAt returns the offset of the first byte that is not UTF-8; len(data) if all is.
func invalidAt(data []byte) int {
	for i := 0; i < len(data); {
		r, size := utf8.DecodeRune(data[i:])
		if r == utf8.RuneError && size == 1 {
			return i
		}
		i += size
	}
	return len(data)
}

// transcripts reads the values of a file.
func (d document) transcripts(values []value) ([]Transcript, error) {
	if len(values) == 1 && values[0].raw[0] == '[' {
		items, err := d.list(values[0])
		if err != nil {
			return nil, err
		}
		if values = items; len(values) == 0 {
			return nil, d.fail(0, "the list is empty")
		}
	}
	entries, err := d.objectsOf(values)
	if err != nil || len(entries) == 0 {
		return nil, err
	}
	if all, err, known := d.entries(entries); known {
		return all, err
	}
	var all []Transcript
	for _, e := range entries {
		several, err := d.session(e)
		if d.refuses(err) {
			return nil, err
		}
		all = append(all, several...)
	}
	return all, nil
}

// entries reads a session's entries in the format that they have. known is false if they are no entries of a session.
func (d document) entries(entries []object) (all []Transcript, err error, known bool) {
	var t Transcript
	switch {
	case isPi(entries):
		all, err = d.pi(entries)
		return all, err, true
	case isClaudeCode(entries):
		all, err = d.claudeCode(entries)
		return all, err, true
	case isCodex(entries):
		all, err = d.codex(entries)
		return all, err, true
	case isOpenHands(entries):
		t, err = d.openHands(entries)
	case isShareGPT(entries):
		t, err = d.shareGPT(entries)
	case isSWEAgent(entries):
		t, err = d.sweAgent(entries)
	case entries[0].has("role"):
		t, err = d.messages(entries)
	default:
		return nil, nil, false
	}
	return []Transcript{t}, err, true
}

// sessionLists are the names of lists that hold a session's messages or events.
var sessionLists = []string{"messages", "traj", "history", "conversation", "conversations", "input", "loglines",
	"events", "trajectory"}

// session reads an object with the messages of one or several sessions.
func (d document) session(o object) ([]Transcript, error) {
	switch {
	case o.isList("history") && o.isList("trajectory"), o.isList("history") && o.has("environment"):
		entries, err := d.objects(o.fields["history"])
		if err != nil {
			return nil, err
		}
		t, err := d.sweAgent(entries)
		return []Transcript{t}, err
	case o.isList("loci_messages"):
		return d.loci(o)
	case o.isList("agents"):
		return d.agents(o)
	}
	for _, name := range sessionLists {
		if !o.isList(name) {
			continue
		}
		entries, err := d.objects(o.fields[name])
		if err != nil {
			return nil, err
		}
		if len(entries) == 0 {
			return []Transcript{{}}, nil // the caller refuses a session without messages
		}
		all, err, known := d.entries(entries)
		if err != nil {
			return all, err
		}
		if !known {
			return nil, d.fail(entries[0].at, "no message is known that looks like this: there is no role")
		}
		return d.described(o, name, all)
	}
	return nil, d.fail(o.at, "no session is known that looks like this: there is no role, and no list %s",
		strings.Join(sessionLists, ", "))
}

// described adds to the sessions in a list what the object with the list says about them.
func (d document) described(o object, list string, all []Transcript) ([]Transcript, error) {
	for i := range all {
		t := &all[i]
		t.System, t.Session = cmp.Or(t.System, o.text("system")), cmp.Or(t.Session, o.sessionID())
		if list == "conversations" {
			t.Format = ShareGPT
		}
	}
	questions, err := d.questions(o)
	if len(all) == 1 {
		all[0].Evidence = questions
	}
	return all, err
}

// sessionID returns the id of the session in an object; empty if it has none.
func (o object) sessionID() string {
	return cmp.Or(o.text("session_id"), o.text("conversation_id"), o.text("thread_id"), o.text("id"),
		o.text("instance_id"))
}

// objects reads a list of objects. An object may be a list of objects itself, such as an action with its observation.
func (d document) objects(v value) ([]object, error) {
	items, err := d.list(v)
	if err != nil {
		return nil, err
	}
	var flat []value
	for _, item := range items {
		if item.raw[0] != '[' {
			flat = append(flat, item)
			continue
		}
		several, err := d.list(item)
		if err != nil {
			return nil, err
		}
		flat = append(flat, several...)
	}
	return d.objectsOf(flat)
}

func (d document) objectsOf(values []value) (all []object, err error) {
	for _, v := range values {
		o, err := d.object(v)
		if d.refuses(err) {
			return nil, err
		}
		if err == nil {
			all = append(all, o)
		}
	}
	return all, nil
}

package transcript

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"unicode/utf8"
)

// MaxBytes bounds a transcript.
const MaxBytes = 1 << 30

// Read reads the transcripts in a file: most files have one, data sets have several. It recognizes the format by the
// content. It returns an *Error with the line that is not understood.
func Read(name string, r io.Reader) ([]Transcript, error) {
	data, err := io.ReadAll(io.LimitReader(r, MaxBytes+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	d := document{name: name, data: bytes.TrimPrefix(data, []byte("\ufeff"))}
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
	entries := make([]object, len(values))
	for i, v := range values {
		var err error
		if entries[i], err = d.object(v); err != nil {
			return nil, err
		}
	}
	switch {
	case isPi(entries):
		return d.pi(entries)
	case isClaudeCode(entries):
		return d.claudeCode(entries)
	case entries[0].has("role"):
		t, err := d.messages(entries)
		return []Transcript{t}, err
	}
	var all []Transcript
	for _, e := range entries {
		several, err := d.session(e)
		if err != nil {
			return nil, err
		}
		all = append(all, several...)
	}
	return all, nil
}

// session reads an object with the messages of one or several sessions.
func (d document) session(o object) ([]Transcript, error) {
	switch {
	case o.isList("history") && o.isList("trajectory"), o.isList("history") && o.has("environment"):
		t, err := d.sweAgent(o)
		return []Transcript{t}, err
	case o.isList("loci_messages"):
		return d.loci(o)
	case o.isList("agents"):
		return d.agents(o)
	}
	for _, name := range []string{"messages", "traj", "history", "conversation", "input"} {
		if !o.isList(name) {
			continue
		}
		entries, err := d.objects(o.fields[name])
		if err != nil {
			return nil, err
		}
		t, err := d.messages(entries)
		if system := o.text("system"); t.System == "" {
			t.System = system
		}
		t.Session = o.sessionID()
		if err == nil {
			t.Evidence, err = d.questions(o)
		}
		return []Transcript{t}, err
	}
	return nil, d.fail(o.at, "no session is known that looks like this: there is no role, and no list messages, traj, "+
		"history, conversation or input")
}

// sessionID returns the id of the session in an object; empty if it has none.
func (o object) sessionID() string {
	return cmp.Or(o.text("session_id"), o.text("conversation_id"), o.text("thread_id"), o.text("id"))
}

// objects reads a list of objects.
func (d document) objects(v value) ([]object, error) {
	items, err := d.list(v)
	if err != nil {
		return nil, err
	}
	all := make([]object, len(items))
	for i, item := range items {
		if all[i], err = d.object(item); err != nil {
			return nil, err
		}
	}
	return all, nil
}

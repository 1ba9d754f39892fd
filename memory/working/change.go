package working

import (
	"context"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/loci-memory/loci/chunker/frame"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall/tokens"
)

// Change is a change of one entry.
type Change struct {
	Field Field

	// Action is Add, which adds an entry to a list, or moves it to the end with new evidence, Set, which replaces the
	// entry Old of a list or that of a field with one entry, or Remove. Empty is Set for a field with one entry, else Add.
	Action string

	Text string // of the entry; may be empty to remove the only entry of a field
	Old  string // the entry of a list that Set replaces

	// Evidence is what the entry rests on: a position of the agent's log, the name of a file of the agent's folders, or a
	// value of the arguments of a call, such as a command or a path, whose latest result it then is. Empty names no call.
	Evidence string

	// Pasted says that a model wrote the texts, which it may have copied from a prompt with the marks and the label that
	// they have there.
	Pasted bool

	labelled string // the position in the label of a pasted text
}

// The actions of changes.
const (
	Add    = "add"
	Set    = "set"
	Remove = "remove"
)

// copiedLabel matches what a prompt shows before the text of an entry.
var copiedLabel = regexp.MustCompile(`^\s*(?:- |(?:task|next): )?\[seq (\d+)(?:, stale since seq \d+)?\] ?`)

// shown returns the text that a prompt shows as a pasted one, and the position in its label; 0 if it has none.
func shown(pasted string) (text string, seq string) {
	if m := copiedLabel.FindStringSubmatchIndex(pasted); m != nil {
		seq, pasted = pasted[m[2]:m[3]], pasted[m[1]:]
	}
	return frame.UnmarkLineEnds(frame.Restore(pasted)), seq
}

// resolved returns a change whose texts are not pasted: those of entries of the field where it names some.
func (c Change) resolved(entries []Entry) Change {
	if !c.Pasted {
		return c
	}
	has := func(text string) bool { return indexOf(entries, text) >= 0 }
	text, seq := shown(c.Text)
	given := c.Text
	if c.Text = text; c.Action == Remove && !has(text) {
		for _, reading := range []string{frame.UnmarkLineEnds(frame.Restore(given)), given} {
			if has(reading) {
				c.Text = reading
			}
		}
	}
	c.labelled = seq
	if old, _ := shown(c.Old); has(old) || !has(c.Old) {
		c.Old = old
	}
	return c
}

// indexOf returns the index of the entry with a text, -1 if no entry has it.
func indexOf(entries []Entry, text string) int {
	return slices.IndexFunc(entries, func(e Entry) bool { return e.Text == text })
}

// lineEnds are the characters at which a reader may see a new line begin.
const lineEnds = "\n" + frame.LineEnds

// checked returns a change in its final form. ErrInvalid if it breaks a rule.
func (c Change) checked(r Record) (Change, error) {
	if !slices.Contains(Fields, c.Field) {
		return c, db.Invalid("There is no field %q in working memory; its fields are %s.", db.Short(string(c.Field)),
			joinedFields())
	}
	switch {
	case c.Action == "" && c.Field.single(), c.Action == Add && c.Field.single():
		c.Action = Set
	case c.Action == "":
		c.Action = Add
	case c.Action != Add && c.Action != Set && c.Action != Remove:
		return c, db.Invalid("There is no action %q; the actions are add, set and remove.", db.Short(c.Action))
	}
	c.Text, c.Old = c.trimmed(c.Text), c.trimmed(c.Old)
	c = c.resolved(r.Entries(c.Field))
	c.Text, c.Old = c.trimmed(c.Text), c.trimmed(c.Old)
	return c, c.check(r.Entries(c.Field))
}

// trimmed returns a text without white space around it; a diff keeps that of its lines.
func (c Change) trimmed(text string) string {
	if c.Field == LastEdit {
		return strings.Trim(db.Clean(text), "\r\n")
	}
	return strings.TrimSpace(db.Clean(text))
}

func (c Change) check(entries []Entry) error {
	switch {
	case len(c.Text)+len(c.Old) > maxChangeBytes:
		return db.Invalid("An entry of %s has %d bytes; keep long texts elsewhere.", c.Field, len(c.Text)+len(c.Old))
	case c.Action == Remove:
		return c.checkNamed(entries, c.Text, c.Field.single() && c.Text == "")
	case c.Text == "":
		return db.Invalid("The change of %s has no text. To remove an entry, use the action remove.", c.Field)
	case c.Field != LastEdit && strings.ContainsAny(c.Text, lineEnds):
		return db.Invalid("An entry of %s is one line; the text has several. Add them one by one.", c.Field)
	case c.Field == LastEdit && tokens.Estimate(c.Text) > MaxEditTokens:
		return db.Invalid("The diff has %d tokens; last_edit may have at most %d. Give the hunk that matters most.",
			tokens.Estimate(c.Text), MaxEditTokens)
	case c.Action == Set && !c.Field.single() && c.Old == "":
		return db.Invalid("%s is a list: give the entry to replace in old, or use the action add.", c.Field)
	case c.Action == Set && !c.Field.single():
		return c.checkNamed(entries, c.Old, false)
	}
	return nil
}

// checkNamed returns ErrInvalid, listing the entries, if no entry has the text, unless any entry will do.
func (c Change) checkNamed(entries []Entry, text string, anyOne bool) error {
	if anyOne || indexOf(entries, text) >= 0 {
		return nil
	}
	if len(entries) == 0 {
		return db.Invalid("%s has no entries; nothing was changed.", c.Field)
	}
	var texts []string
	for _, e := range entries {
		texts = append(texts, strconv.Quote(e.Text))
	}
	return db.Invalid("%s has no entry %q; nothing was changed. Its entries are: %s", c.Field, db.Short(text),
		strings.Join(texts, ", "))
}

// apply changes a record that is a copy. entry returns the new entry with its evidence.
func (c Change) apply(r *Record, entry func() (Entry, error)) error {
	entries := r.Entries(c.Field)
	i := indexOf(entries, c.Text)
	if c.Action == Remove {
		if c.Text == "" {
			i = 0
		}
		if len(entries) > 0 {
			r.set(c.Field, slices.Delete(slices.Clone(entries), i, i+1))
		}
		return nil
	}
	e, err := entry()
	if err != nil {
		return err
	}
	entries = slices.Clone(entries)
	switch {
	case c.Field.single():
		entries = []Entry{e}
	case c.Action == Set:
		at := indexOf(entries, c.Old)
		if entries[at] = e; i >= 0 && i != at {
			entries = slices.Delete(entries, i, i+1)
		}
	case i >= 0:
		entries = append(slices.Delete(entries, i, i+1), e)
	default:
		entries = append(entries, e)
	}
	r.set(c.Field, entries)
	return checkImportant(entries, c.Field)
}

func checkImportant(entries []Entry, f Field) error {
	if f != ImportantFiles || len(entries) <= MaxImportant {
		return nil
	}
	var paths []string
	for _, e := range entries[:MaxImportant] {
		paths = append(paths, e.Text)
	}
	return db.Invalid("important_files has %d files already, the most that it may have: %s. Remove those that the task "+
		"does not need any more; nothing was changed.", MaxImportant, strings.Join(paths, ", "))
}

func joinedFields() string {
	var names []string
	for _, f := range Fields {
		names = append(names, string(f))
	}
	return strings.Join(names, ", ")
}

// redacted returns a change without secrets. A text that names an entry from before stays.
func (c Change) redacted(r Record, redacted func(string) string) Change {
	entries := r.Entries(c.Field)
	if c.Action != Remove || indexOf(entries, c.trimmed(c.Text)) < 0 {
		c.Text = redacted(c.Text)
	}
	if indexOf(entries, c.trimmed(c.Old)) < 0 {
		c.Old = redacted(c.Old)
	}
	c.Evidence = redacted(c.Evidence)
	return c
}

// applyAll returns a record after changes. ErrInvalid if one of them breaks a rule.
func (s *Store) applyAll(ctx context.Context, org db.Org, l log, before Record, changes []Change) (Record, error) {
	if len(changes) == 0 || len(changes) > maxChanges {
		return Record{}, db.Invalid("%d changes are given; it must be from 1 to %d, each with a field and a text.",
			len(changes), maxChanges)
	}
	redacted, err := s.Recall.Redactor(ctx, s.DB, org)
	if err != nil {
		return Record{}, err
	}
	after := before.clone()
	for _, c := range changes {
		c, err := c.redacted(after, redacted).checked(after)
		if err != nil {
			return Record{}, err
		}
		if err := c.apply(&after, func() (Entry, error) { return s.entry(ctx, org, l, c) }); err != nil {
			return Record{}, err
		}
	}
	return after, checkSize(before, after)
}

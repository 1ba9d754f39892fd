package working

import (
	"context"
	"fmt"
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

	// Action is Add, Set or Remove. Add adds an entry to a list; if the list has the entry already, it moves to the end
	// with new evidence. Set replaces the entry Old of a list, or the only entry of a field. Empty means Set for a field
	// with a single entry, otherwise Add.
	Action string

	Text string // text of the entry; may be empty to remove the only entry of a field
	Old  string // the list's entry that Set replaces

	// Evidence is what the entry is based on: a position in the agent's log, the name of a file in the agent's folders, or
	// a value among the arguments of a tool call, such as a command or a path. For such a value it is the latest result of
	// that call. Empty means no evidence.
	Evidence string

	// Pasted says that a model wrote the texts. It may have copied them from a prompt, with the marks and the label that
	// they have there.
	Pasted bool

	labelled string // position in the label of a pasted text
}

// The actions of changes.
const (
	Add    = "add"
	Set    = "set"
	Remove = "remove"
)

// copiedLabel matches what a prompt shows before the text of an entry.
var copiedLabel = regexp.MustCompile(`^\s*(?:- |(?:task|next): )?\[seq (\d+)(?:, stale since seq \d+)?\] ?`)

// shown returns a pasted text without the prompt's marks and label, and the position in the label, or "".
func shown(pasted string) (text string, seq string) {
	if m := copiedLabel.FindStringSubmatchIndex(pasted); m != nil {
		seq, pasted = pasted[m[2]:m[3]], pasted[m[1]:]
	}
	return frame.UnmarkLineEnds(frame.Restore(pasted)), seq
}

// resolved returns the change with the texts that were meant, if they are pasted. Where a text names an entry of the
// field, it becomes the entry's text.
func (c Change) resolved(entries []Entry) Change {
	if !c.Pasted {
		return c
	}
	isEntry := func(text string) bool { return indexOf(entries, text) >= 0 }
	text, seq := shown(c.Text)
	pasted := c.Text
	if c.Text = text; c.Action == Remove && !isEntry(text) {
		for _, reading := range []string{frame.UnmarkLineEnds(frame.Restore(pasted)), pasted} {
			if isEntry(reading) {
				c.Text = reading
			}
		}
	}
	c.labelled = seq
	if old, _ := shown(c.Old); isEntry(old) || !isEntry(c.Old) {
		c.Old = old
	}
	return c
}

// indexOf returns the index of the entry with a text, or -1.
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

// trimmed returns a text without white space around it. A diff keeps the white space of its lines.
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

// checkNamed returns ErrInvalid, with a list of the entries, if no entry has the text. It returns nil if anyOne is set.
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

// apply changes r, which must be a copy. entry returns the new entry with its evidence.
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
		oldIndex := indexOf(entries, c.Old)
		if entries[oldIndex] = e; i >= 0 && i != oldIndex {
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

// redacted returns the change without secrets. A text that names an existing entry stays as it is.
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

// applyAll returns the record after the changes. ErrInvalid if one of them breaks a rule.
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
	return after, checkSize(before, after, l.window)
}

// maxShownChars bounds the characters that Differences shows of an entry.
const maxShownChars = 100

// Differences returns a line for each entry that only one of two records has: "+ field: entry" for the second record,
// "- field: entry" for the first. Marks of stale entries are ignored.
func Differences(before, after Record) (lines []string) {
	before, after = before.unmarked(), after.unmarked()
	for _, f := range Fields {
		was, is := before.Entries(f), after.Entries(f)
		for _, e := range was {
			if indexOf(is, e.Text) < 0 {
				lines = append(lines, fmt.Sprintf("- %s: %s", f, e.short()))
			}
		}
		for _, e := range is {
			if i := indexOf(was, e.Text); i < 0 || was[i].Seq != e.Seq {
				lines = append(lines, fmt.Sprintf("+ %s: %s%s", f, e.label(), e.short()))
			}
		}
	}
	return lines
}

// short returns the text of an entry on one line, cut at maxShownChars.
func (e Entry) short() string {
	text := frame.Neutralize(strings.Join(strings.Fields(e.Text), " "))
	if runes := []rune(text); len(runes) > maxShownChars {
		return string(runes[:maxShownChars]) + "…"
	}
	return text
}

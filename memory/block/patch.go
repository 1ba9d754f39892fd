package block

import (
	"slices"
	"strings"

	"github.com/loci-memory/loci/chunker/frame"
	"github.com/loci-memory/loci/db"
)

// Patch changes blocks. Its text is either hunks of a unified diff for one block, or several operations, each under its
// header:
//
//	*** Add Block: label        with an optional line "Description: …", and the value's lines, each after '+'
//	*** Delete Block: label
//	*** Update Block: label     with an optional line "*** Move to: label", and hunks
//
// In a hunk, unchanged lines begin with ' ', removed lines with '-' and added lines with '+'. Lines that begin with @@
// separate hunks. The lines "*** Begin Patch" and "*** End Patch" are ignored.
type Patch []Operation

// Operation is the change of one block by a patch.
type Operation struct {
	Kind        Kind
	Label       string
	NewLabel    string  // of an update; empty: the label stays
	Description *string // of an addition
	Value       string  // of an addition
	hunks       []hunk
}

// Kind is the kind of an operation.
type Kind int

// The kinds of operations.
const (
	UpdateBlock Kind = iota
	AddBlock
	DeleteBlock
)

// hunk replaces consecutive lines by others.
type hunk struct{ old, new []string }

var headers = []struct {
	prefix string
	kind   Kind
}{
	{"*** Add Block:", AddBlock},
	{"*** Delete Block:", DeleteBlock},
	{"*** Update Block:", UpdateBlock},
}

// moveTo begins the line of an update that gives the block another label.
const moveTo = "*** Move to:"

// ParsePatch reads a patch. Hunks without a header are for the block with the label. ErrInvalid if the text is not a
// patch.
func ParsePatch(label, text string) (Patch, error) {
	lines := slices.DeleteFunc(strings.Split(strings.TrimSuffix(text, "\n"), "\n"), func(line string) bool {
		return line == "*** Begin Patch" || line == "*** End Patch"
	})
	if !slices.ContainsFunc(lines, func(line string) bool { _, _, ok := headerOf(line); return ok }) {
		o := Operation{Kind: UpdateBlock, Label: label}
		return Patch{o}, o.read(lines)
	}
	return parseOperations(lines)
}

func headerOf(line string) (kind Kind, label string, ok bool) {
	for _, h := range headers {
		if rest, found := strings.CutPrefix(line, h.prefix); found {
			return h.kind, strings.TrimSpace(rest), true
		}
	}
	return 0, "", false
}

func parseOperations(lines []string) (Patch, error) {
	var patch Patch
	for len(lines) > 0 {
		kind, label, ok := headerOf(lines[0])
		if !ok {
			if strings.TrimSpace(lines[0]) == "" {
				lines = lines[1:]
				continue
			}
			return nil, db.Invalid("The patch has the line %q before its first header. Begin with *** Add Block:, *** Delete "+
				"Block: or *** Update Block:.", db.Short(lines[0]))
		}
		end := 1
		for end < len(lines) {
			if _, _, next := headerOf(lines[end]); next {
				break
			}
			end++
		}
		o := Operation{Kind: kind, Label: label}
		if err := o.read(lines[1:end]); err != nil {
			return nil, err
		}
		patch, lines = append(patch, o), lines[end:]
	}
	return patch, nil
}

// read reads the lines below an operation's header.
func (o *Operation) read(lines []string) error {
	switch o.Kind {
	case AddBlock:
		return o.readAddition(lines)
	case DeleteBlock:
		return nil
	}
	if len(lines) > 0 && strings.HasPrefix(lines[0], moveTo) {
		o.NewLabel = strings.TrimSpace(strings.TrimPrefix(lines[0], moveTo))
		lines = lines[1:]
	}
	o.hunks = readHunks(withoutFileHeader(lines))
	if len(o.hunks) == 0 && o.NewLabel == "" {
		return db.Invalid("No applicable hunks found in patch. Give the lines to remove after '-', those to add after " +
			"'+', and some around them after a space.")
	}
	return nil
}

func (o *Operation) readAddition(lines []string) error {
	var value []string
	for i, line := range lines {
		text, isDescription := strings.CutPrefix(line, "Description:")
		added, isAdded := strings.CutPrefix(line, "+")
		switch {
		case isAdded:
			value = append(value, added)
		case isDescription && len(value) == 0:
			text = strings.TrimSpace(text)
			o.Description = &text
		case strings.TrimSpace(line) == "" && i == len(lines)-1:
		default:
			return db.Invalid("The line %q of the new block %s has no '+' before it.", db.Short(line),
				db.Short(o.Label))
		}
	}
	o.Value = strings.Join(value, "\n")
	return nil
}

// withoutFileHeader drops the first two lines if they are the file names of a diff. Such lines elsewhere belong to the
// block.
func withoutFileHeader(lines []string) []string {
	if len(lines) > 2 && strings.HasPrefix(lines[0], "--- ") && strings.HasPrefix(lines[1], "+++ ") &&
		strings.HasPrefix(lines[2], "@@") {
		return lines[2:]
	}
	return lines
}

func readHunks(lines []string) []hunk {
	if n := len(lines); n > 0 && lines[n-1] == "" {
		lines = lines[:n-1]
	}
	var hunks []hunk
	var h hunk
	flush := func() {
		if !slices.Equal(h.old, h.new) {
			hunks = append(hunks, h)
		}
		h = hunk{}
	}
	for _, line := range lines {
		switch {
		case strings.HasPrefix(line, "@@"):
			flush()
		case strings.HasPrefix(line, "-"):
			h.old = append(h.old, line[1:])
		case strings.HasPrefix(line, "+"):
			h.new = append(h.new, line[1:])
		case line != `\ No newline at end of file`:
			line = strings.TrimPrefix(line, " ")
			h.old, h.new = append(h.old, line), append(h.new, line)
		}
	}
	flush()
	return hunks
}

// Apply returns the value after an update's hunks, applied in order. Their lines end like those of the value.
// ErrInvalid if the value does not contain a hunk's old lines, or contains them more than once.
func (o Operation) Apply(value string) (string, error) {
	if frame.LineEnd(value) == "\r\n" || !strings.Contains(value, "\r\n") {
		o.hunks = withoutCR(o.hunks)
	}
	return withLineFeeds(value, "", func(value, _ string) (string, error) { return o.apply(value) })
}

// withoutCR returns hunks without CR at the ends of their lines.
func withoutCR(hunks []hunk) []hunk {
	trimmed := func(lines []string) (all []string) {
		for _, line := range lines {
			all = append(all, strings.TrimSuffix(line, "\r"))
		}
		return all
	}
	all := make([]hunk, len(hunks))
	for i, h := range hunks {
		all[i] = hunk{trimmed(h.old), trimmed(h.new)}
	}
	return all
}

func (o Operation) apply(value string) (string, error) {
	for _, h := range o.hunks {
		lines := split(value)
		if len(h.old) == 0 {
			end := len(lines)
			if strings.HasSuffix(value, "\n") {
				end--
			}
			value = strings.Join(slices.Insert(lines, end, h.new...), "\n")
			continue
		}
		start, err := h.place(lines)
		if err != nil {
			return "", err
		}
		value = strings.Join(slices.Concat(lines[:start], h.new, lines[start+len(h.old):]), "\n")
	}
	return value, nil
}

// place returns the index of the line at which the old lines of a hunk begin.
func (h hunk) place(lines []string) (int, error) {
	found := -1
	for start := 0; start+len(h.old) <= len(lines); start++ {
		if !slices.Equal(lines[start:start+len(h.old)], h.old) {
			continue
		}
		if found >= 0 {
			return 0, db.Invalid("Failed to apply patch: hunk context matched multiple places in the memory block. Give more " +
				"of the lines around the change.")
		}
		found = start
	}
	if found < 0 {
		return 0, db.Invalid("Failed to apply patch: expected hunk context not found in the memory block. Its lines must "+
			"be exactly those of the block: %q", db.Short(strings.Join(h.old, "\n")))
	}
	return found, nil
}

package policy

import (
	"cmp"
	"slices"

	"github.com/loci-memory/loci/compaction/clip"
	"github.com/loci-memory/loci/recall"
)

// place identifies a part of a message.
type place struct{ position, part int }

// editsOf maps each edited part of a view to its edit.
func editsOf(v clip.View) map[place]*clip.Edit {
	edits := make(map[place]*clip.Edit, len(v.Edits))
	for i, e := range v.Edits {
		edits[place{e.Position, e.Part}] = &v.Edits[i]
	}
	return edits
}

// messageAt returns the index of the message at a position.
func messageAt(v clip.View, position int) (int, bool) {
	return slices.BinarySearchFunc(v.Messages, position,
		func(m recall.Message, position int) int { return cmp.Compare(m.Position, position) })
}

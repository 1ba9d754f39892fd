package policy

import "github.com/loci-memory/loci/compaction"

func isPointer(e compaction.Edit) bool { return e.Kind == compaction.Pointer }

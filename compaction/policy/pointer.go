package policy

import (
	"github.com/loci-memory/loci/compaction/clip"
)

func isPointer(e clip.Edit) bool { return e.Kind == clip.Pointer }

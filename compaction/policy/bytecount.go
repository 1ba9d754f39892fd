package policy

import (
	"github.com/loci-memory/loci/compaction/clip"
)

// ByteCount is due when the view's texts reach a size in bytes.
type ByteCount struct {
	MaxBytes int `json:"max_bytes" min:"1000" max:"1000000000" doc:"Bytes of a view at which it is compacted."`
}

func (*ByteCount) describe() Mechanism {
	return Mechanism{Name: "byte_count", Stage: Pressure, Source: "OpenClaw (2 MiB)",
		Words: "Compacts at a size of the messages in bytes.",
		New:   func() Step { return &ByteCount{MaxBytes: 2 << 20} }}
}

// Due reports whether the messages, as shown, have at least MaxBytes.
func (s *ByteCount) Due(v clip.View, _ Moment) bool {
	n := 0
	for _, m := range clip.Shown(v.Messages, v.Edits) {
		for _, p := range m.Content {
			n += len(p.Text) + len(p.Name) + len(p.Input)
		}
	}
	return n >= s.MaxBytes
}

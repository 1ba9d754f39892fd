package policy

import (
	"github.com/loci-memory/loci/compaction/clip"
)

// MessageCount is due when the view has a number of messages.
type MessageCount struct {
	MaxMessages int `json:"max_messages" min:"2" max:"10000" doc:"Messages of a view at which it is compacted."`
}

func (*MessageCount) describe() Mechanism {
	return Mechanism{Name: "message_count", Stage: Pressure, Source: "LangChain",
		Words: "Compacts at a number of messages, whatever their size.",
		New:   func() Step { return &MessageCount{MaxMessages: 100} }}
}

// Due reports whether the view has at least MaxMessages.
func (s *MessageCount) Due(v clip.View, _ Moment) bool { return len(v.Messages) >= s.MaxMessages }

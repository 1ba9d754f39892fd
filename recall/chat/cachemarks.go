package chat

import (
	"encoding/json"
	"slices"

	"github.com/loci-memory/loci/chunker/frame"
	"github.com/loci-memory/loci/recall"
)

// Marks are the marks of a request's tools and of its system prompt; nil for none.
type Marks struct{ Tools, System *CacheControl }

// AnthropicMarked returns what Anthropic returns, with marks for the provider's cache: on the last message before the
// state that WithState adds, on the last one of the request before, on the system prompt and on tools, if there are
// any. The request has at most four marks. Marks of clients elsewhere are kept while there is room, the newest first.
// One that gives way still makes the marks before it last as long as it would.
func AnthropicMarked(view []recall.Message, hasTools bool, count Counter) (messages []json.RawMessage, n int, m Marks) {
	all := anthropicMessages(view)
	own := map[*CacheControl]bool{} // the marks at Loci's places
	mark := func(b **CacheControl) {
		if *b == nil {
			*b = &CacheControl{Type: ephemeral}
		}
		own[*b] = true
	}
	last, before := cacheable(all)
	mark(&m.System)
	if last != nil {
		mark(&last.Cache)
	}
	if before != nil {
		mark(&before.Cache)
	}
	if hasTools {
		mark(&m.Tools)
	}
	m.lengthen(all)
	keepMarks(all, own)
	messages, n = encoded(all, count)
	return messages, n, m
}

// keepMarks drops marks of messages until a request has at most four, the oldest first. It keeps those in own.
func keepMarks(all []anthropicMessage, own map[*CacheControl]bool) {
	left := maxMarks - len(own)
	for _, m := range slices.Backward(all) {
		for i := range slices.Backward(m.Content) {
			switch b := &m.Content[i]; {
			case b.Cache == nil || own[b.Cache]:
			case left == 0:
				b.Cache = nil
			default:
				left--
			}
		}
	}
}

// cacheable returns the last block before the state, and the last block of the request before, which ended before the
// newest answer; nil if there is none.
func cacheable(all []anthropicMessage) (last, before *anthropicBlock) {
	found := false // the state; no mark stands behind it
	for _, m := range slices.Backward(all) {
		blocks := m.Content
		if at := slices.IndexFunc(blocks, isStateBlock); at >= 0 {
			blocks, found = blocks[:at], true
		}
		if !found || m.Role != "user" || len(blocks) == 0 {
			continue
		}
		if b := &blocks[len(blocks)-1]; last != nil {
			return last, b
		} else if b.item == nil {
			last = b
		}
	}
	return last, nil
}

func isStateBlock(b anthropicBlock) bool { return b.Type == "text" && frame.IsState(b.Text) }

// lengthen gives each mark before one that lasts an hour the same time, because Anthropic wants longer ones first.
func (m *Marks) lengthen(all []anthropicMessage) {
	long := false
	lengthen := func(c *CacheControl) {
		if c != nil && c.TTL == anHour {
			long = true
		} else if c != nil && long {
			c.TTL = anHour
		}
	}
	for _, message := range slices.Backward(all) {
		for i := range slices.Backward(message.Content) {
			lengthen(message.Content[i].Cache)
		}
	}
	lengthen(m.System)
	lengthen(m.Tools)
}

package agent

import (
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/loci-memory/loci/recall/chat"
	"github.com/loci-memory/loci/server/block"
)

// renderBlocks writes the section of the prompt that shows an agent's blocks, in Letta's layout; empty if there is
// none. Texts are neutralized, so that no value can end its section.
func renderBlocks(blocks []block.Block) string {
	if len(blocks) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("<memory_blocks>\nThe following memory blocks are currently engaged in your core memory unit:\n")
	for _, m := range blocks {
		begin, end := tags(m.Label)
		fmt.Fprintf(&b, "\n%s\n", begin)
		if m.Description != nil && *m.Description != "" {
			fmt.Fprintf(&b, "<description>\n%s\n</description>\n", chat.Neutralize(*m.Description))
		}
		b.WriteString("<metadata>\n")
		if m.ReadOnly {
			b.WriteString("- read_only=true\n")
		}
		fmt.Fprintf(&b, "- chars_current=%d\n- chars_limit=%d\n</metadata>\n<value>\n%s\n</value>\n%s\n",
			utf8.RuneCountInString(m.Value), m.Limit, chat.Neutralize(m.Value), end)
	}
	b.WriteString("\n</memory_blocks>")
	return b.String()
}

// tagName matches the name of a tag.
var tagName = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_-]*$`)

// tags returns the tags around a block. As in Letta their name is the label, if it can be one.
func tags(label string) (begin, end string) {
	if tagName.MatchString(label) {
		return "<" + label + ">", "</" + label + ">"
	}
	return `<block label="` + label + `">`, "</block>"
}

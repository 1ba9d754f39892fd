package policy

import (
	"strings"
	"unicode/utf8"

	"github.com/loci-memory/loci/compaction/clip"
	"github.com/loci-memory/loci/recall/tokens"
)

// CommandTail shows the end of a long command's output, because errors come last.
type CommandTail struct {
	MaxLines int      `json:"max_lines" min:"1" max:"10000000"`
	MaxBytes int      `json:"max_bytes" min:"100" max:"10000000"`
	Tools    []string `json:"tools"`
}

func (*CommandTail) describe() Mechanism {
	return Mechanism{Name: "command_tail", Stage: Enter, Source: "Pi",
		Words: "Shows the last lines of what commands print, because errors come last. A result that Loci stores outside " +
			"the log has only its beginning in a prompt, and stays so: bound it by results/fit before you capture it.",
		Settings: map[string]string{
			"max_lines": "Lines at the end that are shown.",
			"max_bytes": "Bytes of them. Of a last line that is longer, its end is shown.",
			"tools":     "Tools that run commands, with * for any characters. Empty: all.",
		},
		New: func() Step {
			return &CommandTail{MaxLines: 2_000, MaxBytes: 50 << 10,
				Tools: []string{"bash*", "shell*", "exec*", "run_*", "*command*", "terminal*"}}
		}}
}

// Edits clips results to their ends.
func (c *CommandTail) Edits(v clip.View, _ Moment) (edits []clip.Edit) {
	for r := range results(v) {
		if r.edit != nil || r.p.Clip != nil || !selects(c.Tools, nil, r.tool()) {
			continue
		}
		if end := c.end(r.p.Text); end != r.p.Text {
			chars := tokens.Chars(end)
			if strings.HasSuffix(strings.TrimSuffix(r.p.Text, end), "\n") {
				chars++ // the clip begins behind its first line feed
			}
			e := r.clip("command_tail", chars)
			e.Tail = 1
			edits = append(edits, e)
		}
	}
	return edits
}

// end returns as many whole lines from a text's end as fit the bounds. If the last line alone does not fit, it returns
// the end of that line.
func (c *CommandTail) end(text string) string {
	from, lines := len(text), 0
	for lines < c.MaxLines && from > 0 {
		begin := strings.LastIndexByte(text[:max(from-1, 0)], '\n') + 1
		if len(text)-begin > c.MaxBytes {
			break
		}
		from, lines = begin, lines+1
	}
	if lines > 0 || text == "" {
		return text[from:]
	}
	from = len(text) - c.MaxBytes
	for !utf8.RuneStart(text[from]) {
		from++
	}
	return text[from:]
}

package policy

import (
	"unicode/utf8"

	"github.com/loci-memory/loci/compaction/clip"
	"github.com/loci-memory/loci/recall"
)

// OldArguments shortens long texts in the arguments of old calls.
type OldArguments struct {
	KeepMessages  int      `json:"keep_messages" min:"0" max:"100000"`
	MaxChars      int      `json:"max_chars" min:"20" max:"10000000"`
	HeadChars     int      `json:"head_chars" min:"0" max:"10000000"`
	TriggerTokens int      `json:"trigger_tokens" min:"0" max:"100000000"`
	Tools         []string `json:"tools"`
}

func (*OldArguments) describe() Mechanism {
	return Mechanism{Name: "old_arguments", Stage: Prune, Source: "deepagents",
		Words: "Shows only the beginnings of long texts in the arguments of old calls. The arguments keep their fields.",
		Settings: map[string]string{
			"keep_messages":  "How many of the newest messages stay as they are.",
			"max_chars":      "Arguments with fewer characters stay as they are.",
			"head_chars":     "What is shown of the beginning of each long text in the arguments.",
			"trigger_tokens": "Arguments are shortened when the prompt has more tokens. 0: always.",
			"tools":          "Tools whose arguments are shortened, with * for any characters. Empty: all.",
		},
		New: func() Step {
			return &OldArguments{KeepMessages: 20, MaxChars: 100, HeadChars: 20,
				Tools: []string{"write*", "edit*", "create*", "insert*", "*replace*"}}
		}}
}

// Edits clips arguments.
func (o *OldArguments) Edits(v clip.View, at Moment) (edits []clip.Edit) {
	if o.TriggerTokens > 0 && at.tokens(v) <= o.TriggerTokens {
		return nil
	}
	edited := editsOf(v)
	for _, m := range v.Messages[:newest(len(v.Messages), o.KeepMessages)] {
		for i, p := range m.Content {
			if p.Type != recall.ToolCall || !selects(o.Tools, nil, p.Name) || len(p.Input) <= o.MaxChars ||
				edited[place{m.Position, i}] != nil || utf8.RuneCountInString(p.Input) <= o.MaxChars {
				continue
			}
			edits = append(edits, clip.Edit{Position: m.Position, Part: i, Kind: clip.Head, Chars: o.HeadChars,
				Step: "old_arguments"})
		}
	}
	return edits
}

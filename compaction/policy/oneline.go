package policy

import (
	"slices"
	"strings"

	"github.com/loci-memory/loci/compaction/clip"
)

// OneLine replaces old results by a line each when the window fills.
type OneLine struct {
	TriggerShare  float64 `json:"trigger_share" min:"0" max:"1"`
	StopShare     float64 `json:"stop_share" min:"0" max:"1"`
	OldestShare   float64 `json:"oldest_share" min:"0" max:"1"`
	ProtectNewest int     `json:"protect_newest" min:"0" max:"100000"`
	ProtectErrors int     `json:"protect_errors" min:"0" max:"100000"`
	MaxTokens     int     `json:"max_tokens" min:"20" max:"10000" doc:"What a line may take. Shorter results stay."`
	Model         bool    `json:"model"`
}

func (*OneLine) describe() Mechanism {
	return Mechanism{Name: "one_line", Stage: Prune, Source: "four layers, layer 2",
		Words: "Shows a line instead of each old result when the window fills.",
		Settings: map[string]string{
			"trigger_share": "Lines replace results above this share of the window.",
			"stop_share": "Lines replace results, the oldest first, until no more than this share of the window is used. 0: " +
				"all that may be replaced.",
			"oldest_share":   "The oldest messages whose results may be replaced, as a share of the messages.",
			"protect_newest": "How many of the newest results stay.",
			"protect_errors": "How many of the newest results that are errors stay.",
			"model": "Whether the model that summarizes writes the lines, at most 8 for a prompt; other results wait for the " +
				"next prompts. Without a model, a line says how long the result was and how it begins.",
		},
		New: func() Step {
			return &OneLine{TriggerShare: 0.6, StopShare: 0.5, OldestShare: 0.5, ProtectNewest: 5, ProtectErrors: 5,
				MaxTokens: 100, Model: true}
		}}
}

// Edits replaces results by lines, the oldest first.
func (o *OneLine) Edits(v clip.View, at Moment) (edits []clip.Edit) {
	used, window := at.tokens(v), float64(v.Window)
	if v.Window <= 0 || float64(used) <= o.TriggerShare*window {
		return nil
	}
	write := at.Write
	if !o.Model {
		write = nil
	}
	for results := o.eligible(v); len(results) > 0 && (o.StopShare <= 0 || float64(used) > o.StopShare*window); {
		n := len(results) // enough results even if each line is as long as allowed
		if o.StopShare > 0 {
			toSave := float64(used) - o.StopShare*window
			for n = 0; n < len(results) && toSave > 0; n++ {
				toSave -= float64(results[n].tokens(v) - o.MaxTokens)
			}
		}
		for i, line := range linesOf(v, results[:n], o.MaxTokens, write) {
			if line == "" {
				continue
			}
			e, saves := v.Weighed(*results[i].m, results[i].edit, results[i].line("one_line", line))
			if saves > 0 {
				used -= saves
				edits = append(edits, e)
			}
		}
		results = results[n:]
	}
	return edits
}

// WantsLines reports whether the policy has a model write lines instead of results.
func (p Policy) WantsLines() bool {
	return slices.ContainsFunc(p.Steps, func(s Step) bool {
		o, ok := s.(*OneLine)
		return ok && o.Model
	})
}

// eligible returns the results that may be replaced, the oldest first.
func (o *OneLine) eligible(v clip.View) (eligible []result) {
	var all []result
	for r := range results(v) {
		all = append(all, r)
	}
	failed := 0
	protected := map[place]bool{}
	for i, r := range backward(all) {
		if r.failed() {
			failed++
		}
		protected[r.place()] = i < o.ProtectNewest || r.failed() && failed <= o.ProtectErrors
	}
	cutoff := int(o.OldestShare * float64(len(v.Messages)))
	for _, r := range all {
		if r.message < cutoff && !protected[r.place()] && r.hasText() && len(r.p.Text) > o.MaxTokens &&
			r.tokens(v) > o.MaxTokens {
			eligible = append(eligible, r)
		}
	}
	return eligible
}

// lineOf returns a line about a result, written without a model.
func lineOf(r result, maxTokens int) string {
	text := r.p.Text
	if r.p.Clip != nil {
		text = text[:min(max(r.p.Clip.Shown, 0), len(text))]
	}
	chars := max(charsPerToken*maxTokens/2, 40)
	var b strings.Builder
	b.WriteString("compacted without a model: " + r.toolName())
	if r.call != nil && r.call.Input != "" && r.call.Input != "{}" {
		b.WriteString(" " + oneLine(r.call.Input, chars/3))
	}
	b.WriteString(" returned " + counted(r))
	if first := oneLine(firstLine(text), chars/3); first != "" {
		b.WriteString(`, which begin "` + first + `"`)
	}
	if last := importantLine(text); last != "" {
		b.WriteString(` and say "` + oneLine(last, chars/3) + `"`)
	}
	return b.String()
}

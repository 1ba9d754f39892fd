package policy

import (
	"unicode/utf8"

	"github.com/loci-memory/loci/compaction/clip"
	"github.com/loci-memory/loci/recall"
)

// Recency shows less of a message the older it is.
type Recency struct {
	VerbatimTurns int    `json:"verbatim_turns" min:"1" max:"1000000"`
	ClipTurns     int    `json:"clip_turns" min:"0" max:"1000000"`
	ClipTokens    int    `json:"clip_tokens" min:"20" max:"1000000"`
	LineTurns     int    `json:"line_turns" min:"0" max:"1000000"`
	LineTokens    int    `json:"line_tokens" min:"20" max:"10000"`
	EveryTurns    int    `json:"every_turns" min:"1" max:"1000"`
	Of            string `json:"of" oneof:"results,answers,all"`
}

func (*Recency) describe() Mechanism {
	return Mechanism{Name: "recency", Stage: Prune, Source: "deck, lever 3",
		Words: "Shows the less of a message the older it is: whole, clipped, as a line, or only where to read it.",
		Settings: map[string]string{
			"verbatim_turns": "The newest turns, which are shown whole. A turn is an answer of the assistant with the " +
				"results of its calls.",
			"clip_turns":  "The turns before those whose parts are clipped to clip_tokens.",
			"clip_tokens": "What a clipped part takes, about.",
			"line_turns": "The turns before those whose results are shown as a line. Of older ones only where to read the " +
				"result is shown.",
			"line_tokens": "What a line takes at most.",
			"every_turns": "Messages grow older only once in this many turns, so that the beginning of the prompt stays the " +
				"same between.",
			"of": "What is shown so: results; also texts, arguments, and thoughts of the assistant; or also texts of the " +
				"user but the newest.",
		},
		New: func() Step {
			return &Recency{VerbatimTurns: 3, ClipTurns: 7, ClipTokens: 400, LineTurns: 15, LineTokens: 60, EveryTurns: 4,
				Of: "answers"}
		}}
}

// Edits shortens each old part by its age.
func (c *Recency) Edits(v clip.View, _ Moment) (edits []clip.Edit) {
	ages := c.ages(v)
	edited := editsOf(v)
	for r := range results(v) {
		if age := ages[r.message]; age < c.VerbatimTurns {
			break
		} else if e, ok := c.ofResult(r, age); ok {
			edits = append(edits, e)
		}
	}
	for i, m := range v.Messages {
		if ages[i] < c.VerbatimTurns {
			break
		}
		for n, p := range m.Content {
			e, ok := c.ofPart(p, m.Role, ages[i])
			e.Position, e.Part = m.Position, n
			if old := edited[place{m.Position, n}]; ok && (old == nil || old.Kind != e.Kind || old.Chars != e.Chars) {
				edits = append(edits, e)
			}
		}
	}
	return edits
}

// ofResult returns the edit of a result that is age turns old.
func (c *Recency) ofResult(r result, age int) (clip.Edit, bool) {
	switch trim := charsPerToken * c.ClipTokens; {
	case age < c.VerbatimTurns+c.ClipTurns:
		return r.clip("recency", trim), r.hasText() && shownLength(r) > trim
	case age < c.VerbatimTurns+c.ClipTurns+c.LineTurns:
		if !r.hasText() {
			return clip.Edit{}, false
		}
		return r.line("recency", lineOf(r, c.LineTokens)), true
	}
	return r.stub("recency", cleared), r.edit == nil || r.edit.Kind != clip.Stub
}

// ofPart returns the edit of any other part that is age turns old.
func (c *Recency) ofPart(p recall.Part, role recall.Role, age int) (e clip.Edit, ok bool) {
	e.Step = "recency"
	answer := c.Of != "results" && role == recall.Assistant
	switch {
	case answer && isThought(p):
		e.Kind = clip.Removed
		return e, true
	case answer && (p.Type == recall.Text || p.Type == recall.ToolCall),
		c.Of == "all" && role == recall.User && p.Type == recall.Text:
		e.Chars = charsPerToken * c.ClipTokens
		if age >= c.VerbatimTurns+c.ClipTurns {
			e.Chars = charsPerToken * c.LineTokens
		}
		text := p.Text + p.Input
		return e, len(text) > e.Chars && utf8.RuneCountInString(text) > e.Chars
	}
	return e, false
}

// ages returns the age of each message in turns. Ages grow only every EveryTurns turns.
func (c *Recency) ages(v clip.View) []int {
	turn := make([]int, len(v.Messages)) // for each message, the number of answers up to it
	turns := 0
	for i, m := range v.Messages {
		if m.Role == recall.Assistant && (i == 0 || v.Messages[i-1].Role != recall.Assistant) {
			turns++
		}
		turn[i] = turns
	}
	lastStep := turns - turns%c.EveryTurns
	for i := range turn {
		turn[i] = max(lastStep-turn[i], 0)
	}
	return turn
}

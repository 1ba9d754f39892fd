package policy

import (
	"slices"
	"sort"
	"strings"

	"github.com/loci-memory/loci/compaction/clip"
	"github.com/loci-memory/loci/compaction/plan"
	"github.com/loci-memory/loci/compaction/summary"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall/tokens"
)

// RestoreFiles shows again what the work needs of the messages that left: the newest files that were read, and the
// newest to-do list and plan.
type RestoreFiles struct {
	MaxFiles       int      `json:"max_files" min:"1" max:"100" doc:"That are shown again, the newest."`
	MaxFileTokens  int      `json:"max_file_tokens" min:"1" max:"1000000" doc:"Of one; a longer one is cut."`
	MaxTotalTokens int      `json:"max_total_tokens" min:"1" max:"10000000" doc:"Of all; at most half of what is free."`
	PlanTools      []string `json:"plan_tools"`
}

func (*RestoreFiles) describe() Mechanism {
	return Mechanism{Name: "restore_files", Stage: Restore, Source: "Claude Code",
		Words: "Shows the newest files again that were read in what was summarized, and the newest to-do list and plan.",
		Settings: map[string]string{
			"plan_tools": "Tools whose newest call is shown again as well, with * for any characters. Empty: none.",
		},
		New: func() Step {
			return &RestoreFiles{MaxFiles: 5, MaxFileTokens: 5_000, MaxTotalTokens: 50_000,
				PlanTools: []string{"*todo*", "update_plan", "*plan_mode*", "exitplanmode"}}
		}}
}

// Restore returns the plans and then the files, the newest first. It leaves out a file or a plan with a result that is
// still in view.
func (s *RestoreFiles) Restore(left, after clip.View, at Moment) (all []Restored) {
	free := at.restorable(after, s.MaxTotalTokens)
	seen := map[string]bool{}
	for r := range results(after) {
		seen[s.source(r)] = true
	}
	var read []result
	for r := range results(left) {
		read = append(read, r)
	}
	var plans, files []result // of those not in view, the newest first
	for _, r := range slices.Backward(read) {
		source := s.source(r)
		switch {
		case source == "" || seen[source]:
			continue
		case s.isPlan(r):
			plans = append(plans, r)
		case len(files) < s.MaxFiles:
			files = append(files, r)
		default:
			continue
		}
		seen[source] = true
	}
	take := func(r result, room int) {
		restored := s.within(left, r, room, at)
		if restored.Named && s.isPlan(r) {
			return
		}
		free -= restored.Tokens
		all = append(all, restored)
	}
	for _, r := range plans { // first, because they are short
		take(r, free)
	}
	for i, room := range s.shares(left, files, free) {
		take(files[i], room)
	}
	return all
}

// shares returns what each file may take of the free tokens. Files get equal shares, and what a short file leaves of
// its share goes to the others. If the shares would be too small to say anything, the oldest files get none.
func (s *RestoreFiles) shares(v clip.View, files []result, free int) []int {
	shares, order := make([]int, len(files)), make([]int, len(files))
	wants := make([]int, len(files))
	for i, r := range files {
		order[i], wants[i] = i, min(s.MaxFileTokens, r.tokens(v))
		if r.p.Clip != nil {
			wants[i] = s.MaxFileTokens // its text is longer than what the log has of it
		}
	}
	shared := min(len(files), max(free, 0)/leastRestored)
	order = order[:shared]
	slices.SortStableFunc(order, func(a, b int) int { return wants[a] - wants[b] })
	for n, i := range order {
		shares[i] = min(wants[i], free/(shared-n))
		free -= shares[i]
	}
	return shares
}

// restorable returns how many tokens of a bound may be shown again in a view after a compaction: at most half of what
// is free.
func (at Moment) restorable(after clip.View, bound int) int {
	if after.Window == 0 {
		return bound
	}
	most, used := at.most(after), clip.Estimate(after)
	return min(bound, (most-used)/2, plan.Rest(most, after.Fixed)-used)
}

// source returns what a result shows: the path of a file, or the tool of a plan. It is empty if the result is neither,
// or a failed one.
func (s *RestoreFiles) source(r result) string {
	if r.call == nil || r.failed() {
		return ""
	}
	if s.isPlan(r) {
		return r.call.Name
	}
	path, _ := summary.FileOf(*r.call)
	return path
}

func (s *RestoreFiles) isPlan(r result) bool {
	return r.call != nil && matchesAny(s.PlanTools, r.call.Name)
}

// within returns a result cut to the tokens that it may take; named only if that is too little, or if its text is no
// longer shown.
func (s *RestoreFiles) within(v clip.View, r result, free int, at Moment) Restored {
	restored := Restored{Position: r.m.Position, Seq: r.m.Seq, Part: r.part, Source: s.source(r), Tokens: r.tokens(v)}
	if s.isPlan(r) {
		restored.Tokens += plan.PartTokens(v, *r.call)
		restored.Named = restored.Tokens > free
		return restored
	}
	most := min(s.MaxFileTokens, free)
	more, longer := clip.Edit{}, false
	if r.p.Clip != nil && r.edit == nil && at.Whole != nil && most >= leastRestored {
		more, longer = longerBeginning(v, r, at.Whole(r.p.Clip.ID), most)
	}
	switch {
	case longer:
		restored.Cut, restored.Tokens = &more, more.Tokens
	case !r.hasText():
		restored.Named = true
	case restored.Tokens <= most:
	case most < leastRestored || r.p.Clip != nil || r.edit != nil: // a part of a part says little
		restored.Named = true
	default:
		cut := (&TokenClip{MaxTokens: most, HeadShare: 1}).clip(v, r, restored.Tokens)
		cut.Step = "restore_files"
		restored.Cut, restored.Tokens = &cut, min(most, restored.Tokens)
	}
	if restored.Named {
		restored.Tokens = 0 // its line is within the summary's budget
	}
	return restored
}

// longerBeginning returns an edit that shows more of a result than the log's beginning: as much of its text as takes at
// most most tokens with the note on the rest, in whole lines if one is short enough. ok is false if that is not more.
func longerBeginning(v clip.View, r result, whole string, most int) (e clip.Edit, ok bool) {
	whole = tokens.Prefix(whole, most)
	e = r.clip("restore_files", 0)
	e.Kind = clip.Current
	shows := func(bytes int) bool {
		e.Text = r.p.Beginning(db.Beginning(whole, bytes), v.Has)
		e.Chars, e.Tokens = tokens.Chars(e.Text), 0
		e.Tokens = v.PartTokens(*r.m, r.part, &e)
		return e.Tokens <= most
	}
	end := sort.Search(len(whole), func(i int) bool { return !shows(i + 1) })
	if line := strings.LastIndexByte(whole[:end], '\n') + 1; line > end/2 {
		end = line
	}
	return e, shows(end) && end > r.p.Clip.Shown
}

// leastRestored is how many tokens a file is cut to at least. A shorter beginning says little.
const leastRestored = 200

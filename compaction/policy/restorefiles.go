package policy

import (
	"slices"

	"github.com/loci-memory/loci/compaction/clip"
	"github.com/loci-memory/loci/compaction/plan"
	"github.com/loci-memory/loci/compaction/summary"
	"github.com/loci-memory/loci/recall"
)

// RestoreFiles shows again the newest files that were read in the messages that left.
type RestoreFiles struct {
	MaxFiles       int `json:"max_files" min:"1" max:"100" doc:"That are shown again, the newest."`
	MaxFileTokens  int `json:"max_file_tokens" min:"1" max:"1000000" doc:"Of one; of a longer one only the path is named."`
	MaxTotalTokens int `json:"max_total_tokens" min:"1" max:"10000000" doc:"Of all; at most half of what is free."`
}

func (*RestoreFiles) describe() Mechanism {
	return Mechanism{Name: "restore_files", Stage: Restore, Source: "Claude Code",
		Words: "Shows the newest files again that were read in what was summarized.",
		New:   func() Step { return &RestoreFiles{MaxFiles: 5, MaxFileTokens: 5_000, MaxTotalTokens: 50_000} }}
}

// Restore returns the results, the newest first. It leaves out a file with a result that is still in view.
func (s *RestoreFiles) Restore(left []recall.Message, after clip.View, at Moment) (all []Restored) {
	free := s.MaxTotalTokens
	if after.Window > 0 {
		most, used := at.most(after), clip.Estimate(after)
		free = min(free, (most-used)/2, plan.Rest(most, after.Fixed)-used)
	}
	seen := map[string]bool{}
	for _, r := range filesRead(after) {
		seen[r.Source] = true
	}
	before := after
	before.Messages, before.Edits = left, nil
	for _, r := range slices.Backward(filesRead(before)) {
		if seen[r.Source] || len(all) == s.MaxFiles {
			continue
		}
		seen[r.Source] = true
		if r.Tokens > min(s.MaxFileTokens, free) {
			r.Named, r.Tokens = true, namedTokens
		}
		if free -= r.Tokens; free < 0 {
			break
		}
		all = append(all, r)
	}
	return all
}

// namedTokens bounds the tokens of a line that names a file.
const namedTokens = 100

// filesRead returns the results of calls that read or changed a file, except failed ones.
func filesRead(v clip.View) (all []Restored) {
	for r := range results(v) {
		if r.call == nil || r.failed() {
			continue
		}
		if path, _ := summary.FileOf(*r.call); path != "" {
			all = append(all, Restored{Position: r.m.Position, Seq: r.m.Seq, Part: r.part, Source: path,
				Tokens: plan.PartTokens(v, *r.p)})
		}
	}
	return all
}

package policy_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/loci-memory/loci/compaction"
	"github.com/loci-memory/loci/compaction/plan"
	"github.com/loci-memory/loci/compaction/policy"
	"github.com/loci-memory/loci/compaction/summary"
	"github.com/loci-memory/loci/recall"
)

// A branch is summarized from its newest messages that fit, without results. The list of files covers the whole branch.
func TestBranchSummaries(t *testing.T) {
	t.Parallel()
	format := policy.Formats()["branch"]
	if e := compaction.Branch(nil, 100_000, format); len(e.Messages) != 0 {
		t.Errorf("an empty branch: %+v", e)
	}
	talk := session()
	e := compaction.Branch(talk.Messages, 100_000, format)
	isResult := func(m recall.Message) bool { return m.Role == recall.Tool }
	if slices.ContainsFunc(e.Messages, isResult) || e.Budget != 2_048 || len(e.Messages) != 8 || e.Previous != nil {
		t.Errorf("%d messages, budget %d", len(e.Messages), e.Budget)
	}
	s, err := summary.Summarize(t.Context(), e, plan.Defaults(), nil)
	if err != nil || !strings.Contains(s.Text, "## Goal\n- ") || strings.Contains(s.Text, "Critical Context") ||
		!strings.Contains(s.Text, "<modified-files>\nsrc/parser.go\n</modified-files>") ||
		!strings.HasPrefix(s.Before, "The user explored another branch") {
		t.Errorf("%v, %q before\n%s", err, s.Before, s.Text)
	}
	long := newTalk(200_000, 0)
	long.look(10)
	for range 40 {
		long.say(recall.User, 500).say(recall.Assistant, 500)
	}
	e = compaction.Branch(long.Messages, 32_768, format)
	tokens := 0
	for _, m := range e.Messages {
		tokens += m.Tokens
	}
	if tokens > 16_384 || tokens < 14_000 || e.Messages[len(e.Messages)-1].Seq != long.Messages[len(long.Messages)-1].Seq {
		t.Errorf("%d messages of %d tokens", len(e.Messages), tokens)
	}
	s, err = summary.Summarize(t.Context(), e, plan.Defaults(), nil)
	if err != nil || !strings.Contains(s.Text, "<read-files>\nsrc/file1.go\n</read-files>") {
		t.Errorf("the file of an old call is not listed: %v\n%s", err, s.Text)
	}
}

package agent

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/loci-memory/loci/compaction"
	"github.com/loci-memory/loci/compaction/clip"
	"github.com/loci-memory/loci/compaction/policy"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall"
)

// BranchSummary is the summary that a conversation got of the branch that it left.
type BranchSummary struct {
	MessageID string `json:"message_id,omitempty" doc:"Of the message that tells it; absent if the branch says nothing."`
	Seq       int64  `json:"seq,omitempty" doc:"Of that message."`
	Text      string `json:"text,omitempty" doc:"Of that message."`
	How       string `json:"how,omitempty" doc:"How the summary was made; absent if it is an earlier one."`
	Parted    int    `json:"parted_at" doc:"The last position that both conversations have."`
	Messages  int    `json:"messages" doc:"Of the branch after that position."`
	Repeated  bool   `json:"repeated" doc:"An earlier request told this already."`
}

// maxBranch bounds the messages of a branch that are read.
const maxBranch = 20_000

// SummarizeBranch appends to conversation into a summary of what branch said after the two parted. One is a copy of the
// other, or both are copies of a third. The same branch is summarized only once. ErrInvalid if they share no messages.
func (s *Store) SummarizeBranch(ctx context.Context, org db.Org, into, branch recall.Conversation) (out BranchSummary,
	err error) {
	if out.Parted, err = s.Recall.LastShared(ctx, org, into, branch); err != nil {
		return out, err
	}
	if into.Key == branch.Key || out.Parted == 0 {
		return out, db.Invalid("%s is no branch of conversation %s: name its copy, the conversation that it is a copy of, "+
			"or another copy of that", branch.ID, into.ID)
	}
	out.Messages = branch.Messages - out.Parted
	if out.Messages > maxBranch {
		return out, db.Invalid("the branch has %d messages; a summary is made of at most %d", out.Messages, maxBranch)
	}
	messages, err := s.Recall.Between(ctx, org, branch, out.Parted+1, branch.Messages)
	if err != nil {
		return out, err
	}
	otid := fmt.Sprintf("branch:%s:%s:%d", into.ID, branch.ID, branch.Messages)
	earlier, err := s.Recall.ByOTID(ctx, org, into.AgentKey, otid)
	if err == nil {
		out.MessageID, out.Seq, out.Text, out.Repeated = earlier.ID, earlier.Seq, earlier.Text(), true
		return out, nil
	}
	if !errors.Is(err, db.ErrNotFound) {
		return out, err
	}
	p, err := s.assembleAt(ctx, org, PromptTarget{AgentID: into.AgentID, Conversation: into.ID})
	if err != nil {
		return out, err
	}
	e := compaction.Branch(messages, p.window(), policy.Formats()["branch"])
	if len(e.Messages) == 0 {
		return out, nil
	}
	summary, err := s.Compaction.SummarizeBranch(ctx, e, p.settings)
	if err != nil {
		return out, err
	}
	out.How = string(summary.How)
	out.Text = strings.Join([]string{summary.Before, clip.Range(messages[0].Seq, messages[len(messages)-1].Seq),
		summary.Text}, "\n")
	draft := recall.Draft{Role: recall.System, OTID: &otid, Content: []recall.Part{{Type: recall.Text, Text: out.Text}}}
	stored, err := s.Recall.Append(ctx, org, into.AgentID, into.ID, []recall.Draft{draft})
	if err == nil {
		out.MessageID, out.Seq, out.Repeated = stored[0].ID, stored[0].Seq, stored[0].Repeated
	}
	return out, err
}

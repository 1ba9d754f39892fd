package agent_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/loci-memory/loci/agent"
	"github.com/loci-memory/loci/db/dbtest"
	"github.com/loci-memory/loci/memory/block"
	"github.com/loci-memory/loci/recall"
)

// Few SQL statements make a prompt of 20 blocks, 10 open files and 500 messages, and few make one that must compact
// first.
func TestAPromptTakesFewStatements(t *testing.T) {
	t.Parallel()
	pool := dbtest.Pool(t) // counts the statements of this test
	s := storeOf(t, pool, dbtest.NewOrg(t, pool))
	names := make([]string, 10)
	for i := range names {
		names[i] = fmt.Sprint(i, ".txt")
	}
	f := folder(t, s, "f", strings.Repeat("A line of a file.\n", 50), names)
	n := agent.New{Name: "a", FolderIDs: []string{f.ID}, WindowLimit: new(100_000)}
	for i := range 20 {
		n.Blocks = append(n.Blocks, block.New{Label: fmt.Sprint("block-", i), Value: "A fact."})
	}
	for i := range 500 {
		role := []recall.Role{recall.User, recall.Assistant}[i%2]
		n.Messages = append(n.Messages, said(role, fmt.Sprintf("Message %d.", i)))
	}
	a := create(t, s, n)
	prompt := func() {
		if _, err := s.NextPrompt(t.Context(), s.org, agent.PromptTarget{AgentID: a.ID}); err != nil {
			t.Fatal(err)
		}
	}
	prompt() // sends what a server sends once, and stores what only the first prompt stores
	dbtest.AtMost(t, 25, "a prompt", dbtest.Sent(t, pool, prompt))
	for i := range 20 {
		say(t, s, a, said(recall.User, strings.Repeat(fmt.Sprintf("Message %d is about tea. ", i), 900)))
	}
	dbtest.AtMost(t, 74, "a prompt with a compaction", dbtest.Sent(t, pool, prompt))
}

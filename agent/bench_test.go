package agent_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/loci-memory/loci/agent"
	"github.com/loci-memory/loci/db/dbtest"
	"github.com/loci-memory/loci/files"
	"github.com/loci-memory/loci/memory/block"
	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/recall/tokens"
)

// BenchmarkPrompt makes and hands out a prompt of 20 blocks, 10 open files and 500 visible messages.
func BenchmarkPrompt(b *testing.B) {
	pool, org := dbtest.Org(b)
	s := storeOf(b, pool, org)
	s.Tokens = tokens.New()
	folder, err := s.Files.CreateFolder(b.Context(), s.org, files.NewFolder{Name: "f"})
	if err != nil {
		b.Fatal(err)
	}
	for i := range 10 {
		s.text(b, folder, fmt.Sprintf("%d.txt", i), strings.Repeat("A line of some words & numbers, such as 42.\n", 300))
	}
	n := agent.New{Name: "a", FolderIDs: []string{folder.ID}, WindowLimit: new(1_000_000)}
	for i := range 20 {
		n.Blocks = append(n.Blocks, block.New{Label: fmt.Sprint("block-", i),
			Value: strings.Repeat("A fact about the human. ", 40)})
	}
	for i := range 500 {
		n.Messages = append(n.Messages, said([]recall.Role{recall.User, recall.Assistant}[i%2],
			strings.Repeat(fmt.Sprintf("Message %d is about tea. ", i), 25)))
	}
	for _, model := range []string{"anthropic/claude-sonnet-4", "openai/gpt-4o"} {
		n.Model = &model
		a, err := s.Create(b.Context(), s.org, n)
		if err != nil {
			b.Fatal(err)
		}
		b.Run("assemble/"+model, func(b *testing.B) {
			for b.Loop() {
				if _, err := s.Assemble(b.Context(), s.org, a.ID, "", ""); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run("hand out/"+model, func(b *testing.B) {
			for b.Loop() {
				if _, err := s.NextPrompt(b.Context(), s.org, agent.PromptTarget{AgentID: a.ID}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

package agent_test

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/loci-memory/loci/agent"
	"github.com/loci-memory/loci/db/dbtest/golden"
	"github.com/loci-memory/loci/db/dbtest/scale"
	"github.com/loci-memory/loci/memory/working"
	"github.com/loci-memory/loci/recall"
)

const (
	plantedTurns = 300
	plantedEvery = 6 // turns
)

// planted returns the decision made in a turn; empty if there is none. Every second decision is mentioned only in
// passing.
func planted(turn int) (decision string, passing bool) {
	if turn%plantedEvery != 0 {
		return "", false
	}
	n := turn / plantedEvery
	site := []string{"Oslo", "Bergen", "Tromsø"}[n%3]
	return fmt.Sprintf("the %s in %s listens on port %d", services[n%20], site, 7300+n), n%2 == 1
}

var services = strings.Fields("gateway indexer mailer worker proxy billing search audit export import cache queue " +
	"login avatar report invoice webhook backup metrics tracing")

// turnOf returns a turn of work: a request, a call with a long result, and an answer.
func turnOf(turn int) []recall.Draft {
	ask := fmt.Sprintf("Go on with step %d of the clean-up.", turn)
	switch decision, passing := planted(turn); {
	case decision != "" && passing:
		ask += " By the way, " + decision + "."
	case decision != "":
		ask += " We decided: " + decision + "."
	}
	id, path := fmt.Sprintf("call-%d", turn), fmt.Sprintf("src/part%d.go", turn%40)
	var result strings.Builder
	for line := range 40 {
		fmt.Fprintf(&result, "%s:%d: func step%dLine%d() error { return nil }\n", path, line+1, turn, line)
	}
	return []recall.Draft{said(recall.User, ask),
		{Role: recall.Assistant, Content: []recall.Part{{Type: recall.ToolCall, CallID: id, Name: "read_file",
			Input: fmt.Sprintf(`{"path":%q}`, path)}}},
		{Role: recall.Tool, Content: []recall.Part{{Type: recall.ToolReturn, CallID: id, Text: result.String()}}},
		said(recall.Assistant, fmt.Sprintf("Step %d is done: %s is clean.", turn, path))}
}

// share counts the decisions up to a turn that a prompt contains. It counts those said as decisions and those said in
// passing separately.
func share(request []byte, turn int) string {
	var has, total [2]int
	for t := 1; t <= turn; t++ {
		decision, passing := planted(t)
		if decision == "" {
			continue
		}
		kind := 0
		if passing {
			kind = 1
		}
		total[kind]++
		if bytes.Contains(request, []byte(decision)) {
			has[kind]++
		}
	}
	return fmt.Sprintf("%d of %d, %d of %d", has[0], total[0], has[1], total[1])
}

// In a run of 300 turns the prompt keeps every decision that the agent writes into its working memory. The table of
// this run is in docs/concepts.md.
func TestPlantedDecisionsStayInThePrompt(t *testing.T) {
	t.Parallel()
	scale.Long(t)
	table := "| turns | without | automatic, by rules | by the agent |\n| --- | --- | --- | --- |\n"
	rows := map[int][]string{}
	for arm := range 3 {
		s, _ := newStore(t)
		n := agent.New{Name: "a", WindowLimit: new(16_000)}
		if arm == 1 {
			n.Settings.WorkingMemory = agent.AutomaticMemory
		}
		a := create(t, s, n)
		for turn := 1; turn <= plantedTurns; turn++ {
			say(t, s, a, turnOf(turn)...)
			if decision, _ := planted(turn); decision != "" && arm == 2 {
				remember(t, s, a, "", working.Change{Field: working.Decisions, Text: decision})
			}
			if arm == 1 {
				takenUp(t, s, a)
			}
			if turn%10 == 0 {
				if h := handOut(t, s, a, agent.OpenAI); turn%100 == 0 {
					rows[turn] = append(rows[turn], share(h.Request, turn))
				}
			}
		}
	}
	for turn := 100; turn <= plantedTurns; turn += 100 {
		table += fmt.Sprintf("| %d | %s |\n", turn, strings.Join(rows[turn], " | "))
	}
	if got := rows[plantedTurns][2]; got != "25 of 25, 25 of 25" {
		t.Errorf("with working memory the prompt has %s decisions", got)
	}
	checkTable(t, "../docs/concepts.md", table)
}

// checkTable checks that a document contains a table. If the test runs with -update, it replaces the document's table
// with the same head.
func checkTable(t *testing.T, path, table string) {
	t.Helper()
	docs, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	head, _, _ := strings.Cut(table, "\n")
	start := strings.Index(string(docs), head)
	if start < 0 {
		t.Fatalf("%s has no table %s", path, head)
	}
	end := start + strings.Index(string(docs)[start:], "\n\n") + 1
	if string(docs)[start:end] == table {
		return
	}
	if !golden.Updating() {
		t.Errorf("%s has another table than\n%s", path, table)
		return
	}
	if err := os.WriteFile(path, []byte(string(docs)[:start]+table+string(docs)[end:]), 0o600); err != nil {
		t.Fatal(err)
	}
}

package summary_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/loci-memory/loci/compaction/clip"
	"github.com/loci-memory/loci/compaction/plan"
	"github.com/loci-memory/loci/compaction/policy"
	"github.com/loci-memory/loci/compaction/prose"
	"github.com/loci-memory/loci/compaction/summary"
)

// What the user says again is quoted once. If there is no room for all, older rules stay rather than older chatter.
func TestQuotationsKeepRules(t *testing.T) {
	t.Parallel()
	d := &dialogue{}
	rule := "Never lower the drawbridge before the tide turns."
	d.user(rule)
	for i := range 60 {
		d.user("And what comes after that one?").assistant("The next one.")
		d.user(fmt.Sprintf("Tell me a little about boat number %d and where it lies these days.", i))
		d.assistant("At the quay.")
	}
	f := policy.Formats()["claude-code"]
	e := clip.Evicted{Budget: 1_600, Messages: d.messages, Making: prose.Making{Format: f, Quoted: 700}}
	made, err := summary.Summarize(t.Context(), e, plan.Defaults(), nil)
	if err != nil {
		t.Fatal(err)
	}
	_, quoted, _ := strings.Cut(made.Text, prose.UserHeading)
	if n := strings.Count(quoted, "And what comes after that one?"); n != 1 {
		t.Errorf("the same question is quoted %d times", n)
	}
	if !strings.Contains(quoted, rule) || !strings.Contains(quoted, "boat number 59") ||
		!strings.Contains(quoted, " older, for which there is no room") || strings.Contains(quoted, "boat number 1 ") {
		t.Errorf("quoted:\n%s", quoted)
	}
}

// The form of nine sections has all sections that the messages have something for.
func TestNineSectionsAreFilled(t *testing.T) {
	t.Parallel()
	d := &dialogue{}
	d.user("We use gRPC for the quay service.")
	d.read("look", "berth: 12")
	d.tool("", "post", `{"path":"quay/berth.go"}`, "ОШИБКА 0x8007: лента закончилась", true)
	d.user("It is still open who pays the pilot.")
	d.assistant("I will look at the tide table next.")
	d.user("Do that.")
	d.assistant(strings.Repeat("All is well so far, as it was before. ", 60) + "Next I will draw the map.")
	f := policy.Formats()["claude-code"]
	e := clip.Evicted{Budget: 1_600, Messages: d.messages, Making: prose.Making{Format: f, Quoted: 200}}
	made, err := summary.Summarize(t.Context(), e, plan.Defaults(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range f.Sections {
		if !strings.Contains(made.Text, s.Heading+"\n- ") {
			t.Errorf("there is no %q in\n%s", s.Heading, made.Text)
		}
	}
}

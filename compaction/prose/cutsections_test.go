package prose_test

import (
	"strings"
	"testing"

	"github.com/loci-memory/loci/compaction/prose"
	"github.com/loci-memory/loci/recall/tokens"
)

// A text is cut in its longest sections. Short ones stay whole, and every heading stays.
func TestSectionsAreCutEvenly(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("- the words of a line that says something\n", 40)
	text := "1. Goals: be quick.\n2. What happened: much.\n" + long + "3. Errors and fixes: some.\n" + long +
		"4. Next step: call the shop."
	var usual *prose.Format
	for _, most := range []int{100, 200, 400} {
		got := prose.CutSections(text, most, usual.IsHeading)
		if n := tokens.Estimate(got); n > most || n < most*3/4 {
			t.Errorf("%d tokens of %d:\n%s", n, most, got)
		}
		for _, whole := range []string{"1. Goals: be quick.\n", "2. What happened: much.", "3. Errors and fixes: some.",
			"4. Next step: call the shop."} {
			if !strings.Contains(got, whole) {
				t.Errorf("at %d tokens without %q:\n%s", most, whole, got)
			}
		}
	}
	if got := prose.CutSections(text, 20, usual.IsHeading); tokens.Estimate(got) > 20 {
		t.Errorf("too little room for sections: %q", got)
	}
	deck := &prose.Format{Sections: []prose.FormatSection{{Heading: "Decisions:"}, {Heading: "Next planned action:"}}}
	for _, added := range []string{"Risks:", "## Risks", "**Risks:**"} { // which nobody asked for
		text := "Decisions:\n" + long + added + "\n- the supplier may be late\nNext planned action:\n- call the shop"
		got := prose.CutSections(text, 100, deck.IsHeading)
		for _, whole := range []string{added, "- the supplier may be late", "Next planned action:", "- call the shop"} {
			if !strings.Contains(got, whole) {
				t.Errorf("without %q:\n%s", whole, got)
			}
		}
	}
	if got := prose.CutSections("short", 20, usual.IsHeading); got != "short" {
		t.Errorf("a short text: %q", got)
	}
}

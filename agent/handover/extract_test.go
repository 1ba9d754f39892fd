package handover_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loci-memory/loci/agent/handover"
)

func TestSentencesAreSortedByWhatTheySay(t *testing.T) {
	t.Parallel()
	for text, section := range map[string]string{
		"I migrated the tables.":                handover.SectionDone,
		"We have rebuilt the index, I ran it.":  handover.SectionDone,
		"I sent the report to Ada.":             handover.SectionDone,
		"I wanted the tables to be small.":      "",
		"The port is open on the new host.":     "",
		"Open question: who owns the backfill?": handover.SectionOpen,
		"Open issues are in the tracker.":       handover.SectionOpen,
		"It is still unclear who pays for it.":  handover.SectionOpen,
		"Who owns the backfill of the tables?":  handover.SectionOpen,
		"We decided to use the tables.":         handover.SectionDecided,
		"I learned that the proxy has a limit.": handover.SectionLearned,
		"Next: backfill the tables.":            handover.SectionNext,
	} {
		want := map[string][]string{}
		if section != "" {
			want[section] = []string{text}
		}
		if diff := cmp.Diff(want, handover.SectionsOf(text)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
	}
}

package server_test

import (
	"slices"
	"strings"
	"testing"
)

// An erasure reaches the names of event consumers and the arguments of jobs. The report names each place, and says what
// it does not reach.
func TestErasuresReachWhatIsOutsideOfTheMemories(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent := c.made("/v1/agents", `{"name":"a"}`)
	for _, name := range []string{"desk%20of%20Qzora%20Quill", "desk%20of%20qzora%20quill", "other"} {
		c.must("PUT", "/v1/agents/"+agent+"/consumers/"+name, `{"seq":1}`)
	}
	c.exec(`
		INSERT INTO river_job (kind, queue, state, args, max_attempts, finalized_at)
		VALUES ('kept', 'nobody', 'completed', jsonb_build_object('org', $1::integer, 'text', 'for Qzora Quill'), 1, now())`,
		c.org)
	e := c.erased("Qzora Quill")
	if e.Status != "completed" || len(e.Report.Left) > 0 {
		t.Errorf("the erasure ended as %s, and left %v", e.Status, e.Report.Left)
	}
	consumers := c.must("GET", "/v1/agents/"+agent+"/consumers", "")
	for _, name := range []string{`"desk of [erased]"`, `"desk of [erased] 2"`, `"other"`} {
		if !strings.Contains(consumers, name) {
			t.Errorf("the consumers lack %s: %s", name, consumers)
		}
	}
	var places []string
	for _, p := range e.Report.Places {
		places = append(places, p.Where+" "+p.Of)
	}
	for _, want := range []string{"event_consumers.name consumer desk of [erased] of agent " + agent, "river_job.args "} {
		if !slices.Contains(places, want) {
			t.Errorf("the report lacks %q: %q", want, places)
		}
	}
	remains := strings.Join(e.Report.Remains, "\n")
	for _, want := range []string{"Lines that the server has logged already are the operator's", "Backups",
		"write-ahead log"} {
		if !strings.Contains(remains, want) {
			t.Errorf("what remains lacks %q: %s", want, remains)
		}
	}
	if left := c.stored("quill"); len(left) > 0 {
		t.Errorf("left: %.2000q", left)
	}
}

package server_test

import (
	"encoding/json"
	"fmt"
	"sync"
	"testing"

	"github.com/loci-memory/loci/server/servertest"
)

// If clients change different compaction settings of an agent at the same time, all changes are stored.
func TestConcurrentCompactionSettingsAreAllStored(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent := c.made("/v1/agents", "")
	c.must("PATCH", "/v1/agents/"+agent, `{"compaction_settings":{"goal":0.1,"trigger":0.9}}`)
	for round := range 10 {
		goal, trigger := 0.2+float64(round)/100, 0.7+float64(round)/100
		var requests sync.WaitGroup
		for _, body := range []string{fmt.Sprintf(`{"goal":%g}`, goal), fmt.Sprintf(`{"trigger":%g}`, trigger)} {
			requests.Go(func() {
				got := servertest.Send(c, "PATCH", "/v1/agents/"+agent, `{"compaction_settings":`+body+`}`)
				if got.Code != 200 {
					t.Errorf("%s: got %d %s", body, got.Code, got.Text)
				}
			})
		}
		requests.Wait()
		var stored struct {
			Settings struct {
				Goal    float64 `json:"goal"`
				Trigger float64 `json:"trigger"`
			} `json:"compaction_settings"`
		}
		if err := json.Unmarshal([]byte(c.must("GET", "/v1/agents/"+agent, "")), &stored); err != nil {
			t.Fatal(err)
		}
		if stored.Settings.Goal != goal || stored.Settings.Trigger != trigger {
			t.Errorf("round %d: got goal %g and trigger %g, want %g and %g", round, stored.Settings.Goal,
				stored.Settings.Trigger, goal, trigger)
		}
	}
}

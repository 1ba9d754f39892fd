package server_test

import (
	"fmt"
	"strings"
	"testing"
)

// The next conversation takes all waiting hand-overs, including updates that are approved later.
func TestTheNextConversationTakesAllThatWaits(t *testing.T) {
	t.Parallel()
	c := newServerClient(t)
	agent := c.filed(`,"handover":{"mode":"pending"}`)
	var all []handedOver
	for _, text := range []string{"We decided to use Kafka.", "We decided to use Zinc."} {
		c.captured(agent, "default", `{"messages":[{"role":"user","content":"`+text+`"}]}`)
		all = append(all, c.handOver(agent))
	}
	next := c.made("/v1/conversations?agent_id="+agent, `{}`)
	for _, h := range all {
		for _, u := range h.Updates {
			c.must("POST", "/v1/agents/"+agent+"/handovers/"+h.ID+"/updates/"+fmt.Sprint(u.Number)+"/approve", "")
		}
	}
	got := c.must("GET", "/v1/conversations/"+next+"/working-memory", "")
	if !strings.Contains(got, "Kafka") ||
		!strings.Contains(got, "Zinc") {
		t.Errorf("of %+v the next conversation has %s", all, got)
	}
	c.made("/v1/conversations?agent_id="+agent, `{}`)
	if list := c.must("GET", "/v1/agents/"+agent+"/handovers", ""); strings.Count(list, `"taken_by":"`+next+`"`) != 2 {
		t.Errorf("the hand-overs are %s", list)
	}
}
